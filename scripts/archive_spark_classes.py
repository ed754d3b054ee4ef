"""Write the classes that Spark loads for a refresh into an archive, which each later start maps into memory.

Java takes no notice of an archive that another Java, or other jars, wrote.
"""

import os
import sys

# Where Java compiles only once it keeps 48 MB for the code. What Spark generates can fill them: then Java compiles
# nothing more, and may end with an InternalError where it has to link a method.
CODE = "-XX:ReservedCodeCacheSize=240m"
# What the tests start Spark's Java with: an archive fits no other collector than that which wrote it.
OPTIONS = f"-XX:TieredStopAtLevel=1 {CODE} -XX:+UseSerialGC -Xshare:auto"


def main(archive: str) -> None:
    """Start Spark, let it join and group some rows, and keep what it loaded for that."""
    beside = f"{archive}.new"
    os.environ["SPARK_SUBMIT_OPTS"] = f"{OPTIONS} -XX:ArchiveClassesAtExit={beside} -Xlog:disable"
    from pytrickle.compute.spark.session import build_session
    from pytrickle.config import Settings

    session = build_session(Settings(spark_master="local[2]"))
    java = session.sparkContext._gateway.proc
    rows = session.createDataFrame([(1, 2), (1, 3)], "k int, v int")
    rows.join(rows.groupBy("k").count(), "k").distinct().toPandas()
    session.stop()
    # Java ends, and writes, when its input does.
    java.stdin.close()
    java.wait()
    # A Java that reads half an archive dies of it.
    os.replace(beside, archive)


if __name__ == "__main__":
    main(sys.argv[1])
