"""The lake's edge to storage: a disk of this machine, or HDFS."""
