// SPDX-License-Identifier: Apache-2.0
#pragma once
// A task: the mean colour of each cell of a grid over the image.
#include "vitrail/tasks/task.h"

namespace extending {

vitrail::tasks::Task mean_color_task();

}  // namespace extending
