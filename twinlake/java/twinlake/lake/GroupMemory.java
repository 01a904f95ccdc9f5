package twinlake.lake;

import org.apache.spark.memory.MemoryConsumer;
import org.apache.spark.memory.MemoryMode;
import org.apache.spark.memory.TaskMemoryManager;

/**
 * What groups take, counted by Spark as what its own sorts take is. It gives nothing back when others want it: where
 * Spark has no more, groups are handed on.
 */
final class GroupMemory extends MemoryConsumer {
  GroupMemory(TaskMemoryManager task) {
    super(task, MemoryMode.ON_HEAP);
  }

  @Override
  public long spill(long size, MemoryConsumer wanting) {
    return 0;
  }
}
