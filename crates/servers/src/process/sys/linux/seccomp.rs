//! Filters of system calls for a confined server.
//!
//! They refuse what Landlock and namespaces do not cover, and what no server needs. Everything else
//! is allowed.

use std::collections::BTreeMap;
use std::env::consts::ARCH;
use std::io;

use seccompiler::{
    BpfProgram, SeccompAction, SeccompCmpArgLen, SeccompCmpOp, SeccompCondition, SeccompFilter,
    SeccompRule, TargetArch,
};

use super::Failure;
use crate::process::confinement::Rules;

/// A system call and the arguments with which it is refused: one of the lists must match. Without
/// lists it is always refused.
type Refused = (i64, Vec<Vec<Match>>);
/// The number of an argument of 32 bits, and its values.
type Match = (u8, SeccompCmpOp, u64);

/// The bits of a socket's type without flags.
const SOCKET_TYPE: u64 = 0xf;

/// Newer calls, with the same numbers on all processors; `libc` does not have all of them.
const FCHMODAT2: i64 = 452;
const SETXATTRAT: i64 = 463;
const REMOVEXATTRAT: i64 = 466;
const FILE_SETATTR: i64 = 469;

/// Commands of `ioctl`; the type of the constants in `libc` depends on the C library.
const TIOCSTI: u64 = 0x5412;
const TIOCLINUX: u64 = 0x541c;

/// Calls that do not exist for the server: programs use older ones instead. Their arguments are in
/// memory, where a filter cannot read them, or they bypass filters.
const ABSENT: [i64; 5] = [
    libc::SYS_clone3,
    libc::SYS_io_uring_enter,
    libc::SYS_io_uring_register,
    libc::SYS_io_uring_setup,
    libc::SYS_openat2,
];

/// Calls that are refused.
const REFUSED: [i64; 48] = [
    libc::SYS_acct,
    libc::SYS_add_key,
    libc::SYS_bpf,
    libc::SYS_chroot,
    libc::SYS_clock_adjtime,
    libc::SYS_clock_settime,
    libc::SYS_delete_module,
    libc::SYS_fanotify_init,
    libc::SYS_finit_module,
    libc::SYS_fsconfig,
    libc::SYS_fsmount,
    libc::SYS_fsopen,
    libc::SYS_fspick,
    libc::SYS_init_module,
    libc::SYS_kcmp,
    libc::SYS_kexec_load,
    libc::SYS_keyctl,
    libc::SYS_lookup_dcookie,
    libc::SYS_mount,
    libc::SYS_mount_setattr,
    libc::SYS_move_mount,
    libc::SYS_move_pages,
    libc::SYS_migrate_pages,
    libc::SYS_nfsservctl,
    libc::SYS_open_by_handle_at,
    libc::SYS_open_tree,
    libc::SYS_perf_event_open,
    libc::SYS_pidfd_getfd,
    libc::SYS_pivot_root,
    libc::SYS_process_madvise,
    libc::SYS_process_mrelease,
    libc::SYS_process_vm_readv,
    libc::SYS_process_vm_writev,
    libc::SYS_ptrace,
    libc::SYS_quotactl,
    libc::SYS_quotactl_fd,
    libc::SYS_reboot,
    libc::SYS_request_key,
    libc::SYS_setdomainname,
    libc::SYS_sethostname,
    libc::SYS_setns,
    libc::SYS_settimeofday,
    libc::SYS_swapoff,
    libc::SYS_swapon,
    libc::SYS_syslog,
    libc::SYS_umount2,
    libc::SYS_userfaultfd,
    libc::SYS_vhangup,
];

/// Calls that are refused without namespaces: they change attributes of files, which Landlock
/// does not control, or share memory and queues with other processes of the user.
const REFUSED_WITHOUT_NAMESPACES: [i64; 20] = [
    libc::SYS_fchmodat,
    FCHMODAT2,
    libc::SYS_fchownat,
    libc::SYS_lremovexattr,
    libc::SYS_lsetxattr,
    libc::SYS_mq_open,
    libc::SYS_mq_unlink,
    libc::SYS_msgctl,
    libc::SYS_msgget,
    libc::SYS_removexattr,
    libc::SYS_semctl,
    libc::SYS_semget,
    libc::SYS_setxattr,
    libc::SYS_shmat,
    libc::SYS_shmctl,
    libc::SYS_shmget,
    libc::SYS_utimensat,
    SETXATTRAT,
    REMOVEXATTRAT,
    FILE_SETATTR,
];

/// The same on x86-64, which has older calls.
#[cfg(target_arch = "x86_64")]
const OLD_REFUSED_WITHOUT_NAMESPACES: [i64; 6] = [
    libc::SYS_chmod,
    libc::SYS_chown,
    libc::SYS_futimesat,
    libc::SYS_lchown,
    libc::SYS_utime,
    libc::SYS_utimes,
];
#[cfg(not(target_arch = "x86_64"))]
const OLD_REFUSED_WITHOUT_NAMESPACES: [i64; 0] = [];

#[cfg(target_arch = "x86_64")]
const OLD_REFUSED: [i64; 5] =
    [libc::SYS_ioperm, libc::SYS_iopl, libc::SYS_modify_ldt, libc::SYS_uselib, libc::SYS_ustat];
#[cfg(not(target_arch = "x86_64"))]
const OLD_REFUSED: [i64; 0] = [];

/// Returns the filters, which the kernel applies together.
pub(super) fn filters(rules: &Rules, has_namespaces: bool) -> Result<Vec<BpfProgram>, Failure> {
    let always = |calls: &[i64]| calls.iter().map(|call| (*call, Vec::new())).collect::<Vec<_>>();
    let mut refused = always(&REFUSED);
    refused.extend(always(&OLD_REFUSED));
    refused.extend(arguments());
    refused.extend(privileged_files());
    if !has_namespaces {
        refused.extend(always(&REFUSED_WITHOUT_NAMESPACES));
        refused.extend(always(&OLD_REFUSED_WITHOUT_NAMESPACES));
        refused.extend(of_other_processes());
    }
    let filters = [
        filter(always(&ABSENT), libc::ENOSYS),
        filter(refused, libc::EPERM),
        filter(sockets(rules.network), libc::EACCES),
    ];
    let mut filters = filters.into_iter().collect::<Result<Vec<_>, _>>().map_err(|error| {
        Failure { step: "preparing the filter of system calls", error: io::Error::other(error) }
    })?;
    filters.extend(other_numbers());
    Ok(filters)
}

/// Calls that are refused with certain arguments.
fn arguments() -> Vec<Refused> {
    let any_namespace = |argument| {
        let flags = [
            libc::CLONE_NEWCGROUP,
            libc::CLONE_NEWIPC,
            libc::CLONE_NEWNET,
            libc::CLONE_NEWNS,
            libc::CLONE_NEWPID,
            libc::CLONE_NEWUSER,
            libc::CLONE_NEWUTS,
        ];
        let has = |flag: i32| {
            let flag = u64::from(flag.cast_unsigned());
            vec![(argument, SeccompCmpOp::MaskedEq(flag), flag)]
        };
        flags.into_iter().map(has).collect::<Vec<_>>()
    };
    let is = |argument, value: u64| vec![(argument, SeccompCmpOp::Eq, value)];
    vec![
        (libc::SYS_clone, any_namespace(0)),
        (libc::SYS_unshare, any_namespace(0)),
        // Input for a terminal, and its console's.
        (libc::SYS_ioctl, vec![is(1, TIOCSTI), is(1, TIOCLINUX)]),
    ]
}

/// Calls that create programs with the rights of their owner, or of its group: other users would run
/// them outside.
fn privileged_files() -> Vec<Refused> {
    let bits = [libc::S_ISUID, libc::S_ISGID].map(u64::from);
    let with_mode = |argument| {
        let has = |bit| vec![(argument, SeccompCmpOp::MaskedEq(bit), bit)];
        bits.into_iter().map(has).collect::<Vec<_>>()
    };
    // Without `O_CREAT`, the mode is any number.
    let with_flags = |flags, mode| {
        let create = u64::from(libc::O_CREAT.cast_unsigned());
        let mut lists = with_mode(mode);
        for list in &mut lists {
            list.push((flags, SeccompCmpOp::MaskedEq(create), create));
        }
        lists
    };
    vec![
        #[cfg(target_arch = "x86_64")]
        (libc::SYS_chmod, with_mode(1)),
        #[cfg(target_arch = "x86_64")]
        (libc::SYS_creat, with_mode(1)),
        #[cfg(target_arch = "x86_64")]
        (libc::SYS_mknod, with_mode(1)),
        #[cfg(target_arch = "x86_64")]
        (libc::SYS_open, with_flags(1, 2)),
        (libc::SYS_fchmod, with_mode(1)),
        (libc::SYS_fchmodat, with_mode(2)),
        (FCHMODAT2, with_mode(2)),
        (libc::SYS_mknodat, with_mode(2)),
        (libc::SYS_openat, with_flags(2, 3)),
    ]
}

/// Calls that change other processes of the user.
fn of_other_processes() -> Vec<Refused> {
    let not_self = |argument| vec![vec![(argument, SeccompCmpOp::Ne, 0)]];
    vec![
        (libc::SYS_ioprio_set, not_self(1)),
        (libc::SYS_prlimit64, not_self(0)),
        (libc::SYS_sched_setaffinity, not_self(0)),
        (libc::SYS_sched_setattr, not_self(0)),
        (libc::SYS_sched_setparam, not_self(0)),
        (libc::SYS_sched_setscheduler, not_self(0)),
        (libc::SYS_setpriority, not_self(1)),
    ]
}

/// Sockets that are refused: without network all but pairs; with network all but IP and the
/// addresses of interfaces. Sockets of the file system are always refused, since Landlock does not
/// control them before Linux 7.1: a session's bus or Docker starts any program.
fn sockets(network: bool) -> Vec<Refused> {
    let is_type = |number: i32| {
        let number = u64::from(number.cast_unsigned());
        vec![(1, SeccompCmpOp::MaskedEq(SOCKET_TYPE), number)]
    };
    // A datagram can be sent to any other socket. For pairs, `RAW` means the same.
    let pairs = (libc::SYS_socketpair, vec![is_type(libc::SOCK_DGRAM), is_type(libc::SOCK_RAW)]);
    let family = |number: i32| u64::from(number.cast_unsigned());
    let sockets = if network {
        let is_not = |number| (0, SeccompCmpOp::Ne, family(number));
        let others = [libc::AF_INET, libc::AF_INET6, libc::AF_NETLINK].map(is_not).to_vec();
        let netlink = (0, SeccompCmpOp::Eq, family(libc::AF_NETLINK));
        vec![others, vec![netlink, (2, SeccompCmpOp::Ne, family(libc::NETLINK_ROUTE))]]
    } else {
        Vec::new()
    };
    vec![pairs, (libc::SYS_socket, sockets)]
}

fn filter(refused: Vec<Refused>, error: i32) -> Result<BpfProgram, seccompiler::BackendError> {
    let mut rules = BTreeMap::new();
    for (call, lists) in refused {
        let lists = lists.into_iter().map(|list| {
            let condition = |(argument, operator, value)| {
                SeccompCondition::new(argument, SeccompCmpArgLen::Dword, operator, value)
            };
            SeccompRule::new(list.into_iter().map(condition).collect::<Result<_, _>>()?)
        });
        rules.insert(call, lists.collect::<Result<Vec<_>, _>>()?);
    }
    let action = SeccompAction::Errno(error.cast_unsigned());
    let architecture = TargetArch::try_from(ARCH)?;
    SeccompFilter::new(rules, SeccompAction::Allow, action, architecture)?.try_into()
}

/// Returns a filter against the numbers of another interface, under which x86-64 may offer the same
/// calls again (x32).
#[cfg(target_arch = "x86_64")]
fn other_numbers() -> Option<BpfProgram> {
    use seccompiler::sock_filter;
    const X32: u32 = 0x4000_0000;
    // Offset 0 of the data is the number of the call.
    let load = sock_filter {
        code: (libc::BPF_LD | libc::BPF_W | libc::BPF_ABS) as u16,
        jt: 0,
        jf: 0,
        k: 0,
    };
    let jump = sock_filter {
        code: (libc::BPF_JMP | libc::BPF_JGE | libc::BPF_K) as u16,
        jt: 0,
        jf: 1,
        k: X32,
    };
    let end = |action| sock_filter {
        code: (libc::BPF_RET | libc::BPF_K) as u16,
        jt: 0,
        jf: 0,
        k: action,
    };
    let refuse = libc::SECCOMP_RET_ERRNO | libc::ENOSYS.cast_unsigned();
    Some(vec![load, jump, end(refuse), end(libc::SECCOMP_RET_ALLOW)])
}

#[cfg(not(target_arch = "x86_64"))]
fn other_numbers() -> Option<BpfProgram> {
    None
}
