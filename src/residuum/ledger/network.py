"""Whether a file lies on a network filesystem, where SQLite's locks cannot be trusted."""

from __future__ import annotations

from pathlib import Path

_NETWORK = (
    "9p", "afs", "ceph", "cifs", "fuse.sshfs", "fuse.glusterfs", "fuse.rclone", "fuse.s3fs",
    "glusterfs", "gpfs", "lustre", "ncpfs", "nfs", "nfs4", "smb3", "smbfs", "virtiofs",
)  # fmt: skip


def network_filesystem(path: Path, mounts: str | None = None) -> str | None:
    """The kind of network filesystem that a path is on; None where it is local or not known.

    Known on Linux, from the table of mounts.
    """
    if mounts is None:
        try:
            mounts = Path("/proc/self/mounts").read_text(encoding="utf-8", errors="replace")
        except OSError:
            return None
    here = path.absolute()
    parents = {str(parent) for parent in (here, *here.parents)}
    best = ("", "")
    for line in mounts.splitlines():
        fields = line.split()
        if len(fields) < 3:
            continue
        where = fields[1].replace("\\040", " ")
        # A later line covers an earlier one at the same place.
        if where in parents and len(where) >= len(best[0]):
            best = (where, fields[2])
    return best[1] if best[1] in _NETWORK else None
