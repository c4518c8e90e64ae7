// SPDX-License-Identifier: Apache-2.0
#pragma once
// Runs a request on images in memory.
#include <vector>

#include "vitrail/tasks/loaded_model.h"

namespace vitrail::tasks {

// items: names and photos in the model's colour mode; they get the results.  Throws Error as the request's functions.
void run(const LoadedModel& model, Request& request, std::vector<Item>& items);

}  // namespace vitrail::tasks
