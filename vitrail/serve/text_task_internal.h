// SPDX-License-Identifier: Apache-2.0
#pragma once
// Embedding texts on the thread of the batcher, so that they do not compete with batches for the cores.
#include <functional>

#include "vitrail/base/callbacks.h"
#include "vitrail/serve/call_internal.h"

namespace vitrail::serve {

// Runs a task that embeds `count` texts and reports their progress: between passes others run, and the task ends if the
// client has left.  What the task throws is the response.
void run_text_task(const CallPointer& call, size_t count, std::function<void(const ProgressCallback& progress)> task);

}  // namespace vitrail::serve
