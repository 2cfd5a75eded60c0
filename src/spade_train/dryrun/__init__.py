"""What a run would do and whether it could, before anything is loaded that takes long: ``spade train --dry-run``."""

from spade_train.dryrun.checks import Check
from spade_train.dryrun.report import DryRun, dry_run, load_anywhere

__all__ = ["Check", "DryRun", "dry_run", "load_anywhere"]
