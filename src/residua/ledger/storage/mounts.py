"""What the table of mounts says about a file; known on Linux only.

It says whether SQLite's locks can be trusted there, and whether the file system is writable.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

TABLE = Path("/proc/self/mountinfo")

_NETWORK = frozenset(
    {
        "9p", "afs", "beegfs", "ceph", "cifs", "coda", "gfs2", "glusterfs", "gpfs", "lustre",
        "ncpfs", "nfs", "nfs4", "ocfs2", "orangefs", "panfs", "prl_fs", "pvfs2", "smb3", "smbfs",
        "vboxsf", "virtiofs", "vmhgfs", "wekafs",
    }
)  # fmt: skip
_NETWORK_FUSE = frozenset(
    {
        "alluxio-fuse", "blobfuse", "blobfuse2", "ceph", "ceph-fuse", "cephfs", "curlftpfs",
        "davfs", "davfs2", "fuse_dfs", "gcsfuse", "geesefs", "glusterfs", "goofys",
        "google-drive-ocamlfuse", "gvfsd-fuse", "hdfs", "httpdirfs", "jmtpfs", "juicefs",
        "lizardfs", "mfs", "moosefs", "mount-s3", "mountpoint-s3", "ossfs", "prl_fsd", "rclone",
        "s3fs", "saunafs", "seaweedfs", "smbnetfs", "sshfs", "vmhgfs-fuse", "weed",
    }
)  # fmt: skip


@dataclass(frozen=True)
class _Mount:
    where: str
    kind: str
    read_only: bool
    """The filesystem itself, not only as it is seen from here."""


def network_filesystem(path: Path, table: str | None = None) -> str | None:
    """The kind of network filesystem that a path is on; None where it is local or not known.

    What is shared with the machine outside a virtual one is a network here: two kernels lock.
    """
    mount = _mount_of(path, table)
    if mount is None:
        return None
    kind, _, fuse = mount.kind.partition(".")
    far = fuse.lower() in _NETWORK_FUSE if kind == "fuse" else kind in _NETWORK
    return mount.kind if far else None


def is_read_only(path: Path, table: str | None = None) -> bool:
    """Whether a path is known to be on a medium that cannot be written, from anywhere.

    A directory that is only mounted read-only here may be written to where it is mounted again.
    """
    mount = _mount_of(path, table)
    return mount is not None and mount.read_only


def _mount_of(path: Path, table: str | None) -> _Mount | None:
    if table is None:
        try:
            table = TABLE.read_text(encoding="utf-8", errors="surrogateescape")
        except OSError:
            return None
    # Where links lead to, or one of a directory would hide what it is on.
    here = path.resolve()
    parents = {str(parent) for parent in (here, *here.parents)}
    best: _Mount | None = None
    for line in table.splitlines():
        left, _, right = line.partition(" - ")
        fields, of_filesystem = left.split(" "), right.split(" ")
        if len(fields) < 6 or len(of_filesystem) < 3:
            continue
        where = re.sub(r"\\([0-7]{3})", lambda code: chr(int(code[1], 8)), fields[4])
        # A later line covers an earlier one at the same place.
        if where in parents and (best is None or len(where) >= len(best.where)):
            best = _Mount(where, of_filesystem[0], "ro" in of_filesystem[2].split(","))
    return best
