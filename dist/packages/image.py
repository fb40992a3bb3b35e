"""The OCI image from scratch, as a tar file that `docker load`, `podman load` and `skopeo` read."""

from datetime import UTC, datetime

from .npm import mcp_name
from .release import DESCRIPTION, LICENSE, LICENSES, PACKAGE, ROOT, as_json, compress, sha256, tar, write

PORT = 8620
USER = 65532
MANIFEST = "application/vnd.oci.image.manifest.v1+json"
CONFIG = "application/vnd.oci.image.config.v1+json"
LAYER = "application/vnd.oci.image.layer.v1.tar+gzip"


def make(release):
    layer = tar({
        "bin/kitbag": release.binary,
        **{f"licenses/{name}": ROOT / name for name in LICENSES},
        # Private, as the program requires of its state. The user config is in `home`.
        "data/": None,
        "home/": None,
        "tmp/": None,
        "workspace/": None,
    }, release.time, owners={"data/": (USER, 0o700), "tmp/": (USER, 0o700), "workspace/": (USER, 0o755)})
    packed = compress(layer, release)
    created = datetime.fromtimestamp(release.time, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
    labels = {
        "org.opencontainers.image.title": "kitbag",
        "org.opencontainers.image.description": DESCRIPTION,
        "org.opencontainers.image.version": release.version,
        "org.opencontainers.image.licenses": LICENSE,
    }
    if release.repository:
        labels["org.opencontainers.image.source"] = release.repository
    if mcp_name(release):
        labels["io.modelcontextprotocol.server.name"] = mcp_name(release)
    config = as_json({
        "created": created,
        "architecture": release.platform.image,
        "os": "linux",
        "config": {
            "User": f"{USER}:{USER}",
            "Env": [
                "HOME=/home", "KITBAG_WORKSPACE=/workspace",
                "KITBAG_CACHE_DIR=/data/cache", "KITBAG_STATE_DIR=/data/state",
            ],
            "Entrypoint": ["/bin/kitbag"],
            "Cmd": ["serve", "--http", f"0.0.0.0:{PORT}", "--allow-host", "localhost"],
            "WorkingDir": "/workspace",
            "ExposedPorts": {f"{PORT}/tcp": {}},
            "Volumes": {"/data": {}},
            "Labels": labels,
            # Not in the specification of OCI: Docker reads it, and others ignore it.
            "Healthcheck": {
                "Test": ["CMD", "/bin/kitbag", "doctor", "--server", f"127.0.0.1:{PORT}"],
                "Interval": 60_000_000_000,
                "Timeout": 5_000_000_000,
                "Retries": 3,
            },
        },
        "rootfs": {"type": "layers", "diff_ids": [f"sha256:{sha256(layer)}"]},
        "history": [{"created": created, "created_by": "dist/all"}],
    })
    manifest = as_json({
        "schemaVersion": 2,
        "mediaType": MANIFEST,
        "config": descriptor(CONFIG, config),
        "layers": [descriptor(LAYER, packed)],
    })
    reference = f"{PACKAGE}:{release.version}"
    index = as_json({
        "schemaVersion": 2,
        "mediaType": "application/vnd.oci.image.index.v1+json",
        "manifests": [descriptor(MANIFEST, manifest) | {
            "platform": {"architecture": release.platform.image, "os": "linux"},
            "annotations": {
                "org.opencontainers.image.ref.name": release.version,
                "io.containerd.image.name": f"docker.io/library/{reference}",
            },
        }],
    })
    # Docker before version 25 reads this file instead of the index.
    docker = as_json([{"Config": blob(config), "RepoTags": [reference], "Layers": [blob(packed)]}])
    files = {
        "oci-layout": as_json({"imageLayoutVersion": "1.0.0"}),
        "index.json": index,
        "manifest.json": docker,
        **{blob(data): data for data in (packed, config, manifest)},
    }
    path = release.out / f"{PACKAGE}-{release.version}-{release.platform.image}.image.tar"
    return [write(path, tar(files, release.time))]


def blob(data):
    return f"blobs/sha256/{sha256(data)}"


def descriptor(kind, data):
    return {"mediaType": kind, "digest": f"sha256:{sha256(data)}", "size": len(data)}
