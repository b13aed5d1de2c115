"""What keeping a triangulation up to date has taken."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, kw_only=True)
class MeshReport:
    """What one step, or all steps so far, took."""

    certificates: int = 0  #: that exist
    looked_at: int = 0
    failed: int = 0
    flips: int = 0
    reinserted: int = 0  #: agents that had to be taken out and put back in elsewhere
    rebuilds: int = 0

    def plus(self, other: MeshReport) -> MeshReport:
        """Both together; the certificates are those of the other."""
        return self._combined(other, 1)

    def since(self, earlier: MeshReport) -> MeshReport:
        """What has been added since an earlier report; the certificates are those of this one."""
        return earlier._combined(self, -1)

    def _combined(self, other: MeshReport, sign: int) -> MeshReport:
        # Spelled out, because this happens in every step: a loop over the fields takes five times as long.
        return MeshReport(
            certificates=other.certificates,
            looked_at=other.looked_at + sign * self.looked_at,
            failed=other.failed + sign * self.failed,
            flips=other.flips + sign * self.flips,
            reinserted=other.reinserted + sign * self.reinserted,
            rebuilds=other.rebuilds + sign * self.rebuilds,
        )
