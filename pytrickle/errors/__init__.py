"""The error tree: every failure pytrickle can explain, grouped by what the reader should do about it.
A gated stream table is an answer, not an error.

    PytrickleError
    ├── ConfigError             correct the settings or the machine
    │   └── JavaMissing, JdbcDriverMissing, DatabaseOutOfReach, PackageMissing
    ├── MigrationError          the catalog could not be installed or removed; nothing was changed
    ├── CatalogError            correct the call
    │   ├── NotInstalled, CatalogVersionMismatch, UnknownStreamTable, UnknownWatermarkGroup, StreamTableExists
    │   └── WatermarkMovedBack, InvalidArgument, CycleDetected, NotRetained, InsufficientPrivilege
    ├── WatermarkError          correct how a loader finds its watermark
    │   └── UnknownInput, TooFewObservations
    ├── PlanError               correct the defining query or its refresh mode
    │   ├── QueryRefused
    │   └── NotDifferentiable
    │       └── DeltaTooLong
    ├── RefreshError            the stream table keeps its last contents
    │   ├── RefreshConflict*, FuseBlown, FixpointNotReached, StagingFailed, StreamTableDrifted, WouldRecompute
    │   └── SparkFailed
    │       └── EvaluationFailed, SparkOutOfMemory, SparkTooNarrow, SparkCannotConnect*, SparkStarved*, SparkLost*
    ├── NotYet*                 the data will come, or the hint says what keeps it
    │   └── NotFresh*, WaitTimeout*, RestoreUnderWay*
    ├── Defect                  report it
    └── DatabaseError           look at the server
        ├── ConnectionLost*, Canceled*, StatementTimeout, ReadOnly
        ├── ServerExhausted*
        │   └── DiskFull*
        └── SerializationFailure*
            └── LockTimeout*

Those with a star are retryable: the same call may succeed later by itself.
"""

from pytrickle.errors.base import (
    PytrickleError,
)
from pytrickle.errors.calls import (
    CatalogError,
    CatalogVersionMismatch,
    CycleDetected,
    DeltaTooLong,
    InsufficientPrivilege,
    InvalidArgument,
    NotDifferentiable,
    NotInstalled,
    NotRetained,
    PlanError,
    QueryRefused,
    StreamTableExists,
    TooFewObservations,
    UnknownInput,
    UnknownStreamTable,
    UnknownWatermarkGroup,
    WatermarkError,
    WatermarkMovedBack,
)
from pytrickle.errors.refreshes import (
    Defect,
    EvaluationFailed,
    FixpointNotReached,
    FuseBlown,
    NotFresh,
    NotYet,
    RefreshConflict,
    RefreshError,
    RestoreUnderWay,
    SparkCannotConnect,
    SparkFailed,
    SparkLost,
    SparkOutOfMemory,
    SparkStarved,
    SparkTooNarrow,
    StagingFailed,
    StreamTableDrifted,
    WaitTimeout,
    WouldRecompute,
)
from pytrickle.errors.server import (
    Canceled,
    ConnectionLost,
    DatabaseError,
    DiskFull,
    LockTimeout,
    ReadOnly,
    SerializationFailure,
    ServerExhausted,
    StatementTimeout,
)
from pytrickle.errors.settings import (
    ConfigError,
    DatabaseOutOfReach,
    JavaMissing,
    JdbcDriverMissing,
    MigrationError,
    PackageMissing,
)

__all__ = [
    "Canceled",
    "CatalogError",
    "CatalogVersionMismatch",
    "ConfigError",
    "ConnectionLost",
    "CycleDetected",
    "DatabaseError",
    "DatabaseOutOfReach",
    "Defect",
    "DeltaTooLong",
    "DiskFull",
    "EvaluationFailed",
    "FixpointNotReached",
    "FuseBlown",
    "InsufficientPrivilege",
    "InvalidArgument",
    "JavaMissing",
    "JdbcDriverMissing",
    "LockTimeout",
    "MigrationError",
    "NotDifferentiable",
    "NotFresh",
    "NotInstalled",
    "NotRetained",
    "NotYet",
    "PackageMissing",
    "PlanError",
    "PytrickleError",
    "QueryRefused",
    "ReadOnly",
    "RefreshConflict",
    "RefreshError",
    "RestoreUnderWay",
    "SerializationFailure",
    "ServerExhausted",
    "SparkCannotConnect",
    "SparkFailed",
    "SparkLost",
    "SparkOutOfMemory",
    "SparkStarved",
    "SparkTooNarrow",
    "StagingFailed",
    "StatementTimeout",
    "StreamTableDrifted",
    "StreamTableExists",
    "TooFewObservations",
    "UnknownInput",
    "UnknownStreamTable",
    "UnknownWatermarkGroup",
    "WaitTimeout",
    "WatermarkError",
    "WatermarkMovedBack",
    "WouldRecompute",
]
