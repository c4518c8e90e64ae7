// SPDX-License-Identifier: Apache-2.0
#pragma once
// The tasks, a line each.  The row of FOLDER is FOLDER_task(), in the folder of its name.
#include "vitrail/tasks/task.h"

// clang-format off
#define VITRAIL_TASKS(TASK) \
  TASK(classify) \
  TASK(embed) \
  TASK(embed_pooled) \
  TASK(zeroshot) \
  TASK(attention) \
  TASK(pca) \
  TASK(segment) \
  TASK(label_map) \
  TASK(clipseg) \
  TASK(depth) \
  TASK(matte) \
  TASK(detect) \
  TASK(pose) \
  TASK(open_detect) \
  TASK(anomaly) \
  TASK(explain) \
  TASK(explain_segment)
// clang-format on

namespace vitrail::tasks {

#define VITRAIL_DECLARE_TASK(name) Task name##_task();
VITRAIL_TASKS(VITRAIL_DECLARE_TASK)
#undef VITRAIL_DECLARE_TASK

}  // namespace vitrail::tasks
