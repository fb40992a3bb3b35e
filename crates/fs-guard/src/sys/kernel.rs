//! File systems that expose the kernel.

use std::fs::File;
use std::io;

use rustix::fs::fstatfs;

/// Returns the name of a file's file system if it exposes the kernel, its processes or its devices.
#[cfg(target_os = "linux")]
pub(crate) fn kernel_file_system(file: &File) -> io::Result<Option<&'static str>> {
    // The kernel's numbers have 32 bits; the field's width depends on the architecture.
    let magic = fstatfs(file)?.f_type as u32;
    Ok(KERNEL.iter().find(|(known, _)| *known == magic).map(|(_, name)| *name))
}

#[cfg(not(target_os = "linux"))]
pub(crate) fn kernel_file_system(file: &File) -> io::Result<Option<&'static str>> {
    let found = fstatfs(file)?;
    let name = found.f_fstypename.iter().take_while(|&&byte| byte != 0);
    let name: Vec<u8> = name.map(|&byte| byte.cast_unsigned()).collect();
    Ok(KERNEL.iter().find(|known| known.as_bytes() == name).copied())
}

/// File systems that expose the kernel, its processes or its devices.
///
/// Source: `include/uapi/linux/magic.h` or the source of the file system.
#[cfg(target_os = "linux")]
const KERNEL: &[(u32, &str)] = &[
    (0x0000_9fa0, "proc"),
    (0x6265_6572, "sysfs"),
    (0x0027_e0eb, "cgroup"),
    (0x6367_7270, "cgroup2"),
    (0x6462_6720, "debugfs"),
    (0x7472_6163, "tracefs"),
    (0x7363_6673, "securityfs"),
    (0x6265_6570, "configfs"),
    (0xcafe_4a11, "bpf"),
    (0x6165_676c, "pstore"),
    (0xde5e_81e4, "efivarfs"),
    (0xf97c_ff8c, "selinuxfs"),
    (0x4341_5d53, "smackfs"),
    (0x4249_4e4d, "binfmt_misc"),
    (0x0000_1cd1, "devpts"),
    (0x1980_0202, "mqueue"),
    (0x6e73_6673, "nsfs"),
    (0x6573_5543, "fusectl"),
    (0x6759_6969, "rpc_pipefs"),
    (0x5a3c_69f0, "apparmorfs"),
    (0x6c6f_6f70, "binderfs"),
    (0x0765_5821, "resctrl"),
];
#[cfg(not(target_os = "linux"))]
const KERNEL: &[&str] = &["devfs", "procfs", "fdescfs", "linprocfs", "linsysfs"];
