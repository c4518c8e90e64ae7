// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "vitrail/train/evaluation.h"
#include "vitrail/train/process_group_internal.h"

namespace vitrail::train {

// What each process found on its own images, put together: the same in all of them.
Evaluation all_gather(const ProcessGroup& crew, Evaluation part);

}  // namespace vitrail::train
