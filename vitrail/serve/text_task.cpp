// SPDX-License-Identifier: Apache-2.0
#include "vitrail/serve/text_task_internal.h"

#include "vitrail/pipeline/dual_model.h"

namespace vitrail::serve {

void run_text_task(const CallPointer& call, size_t count, std::function<void(const ProgressCallback& progress)> task) {
  const auto run = [call, task = std::move(task)] {
    call->guard([&] {
      task([&](int64_t done, int64_t total) {
        if (done < total) call->let_others_run();
      });
    });
  };
  call->engine().batcher.run(run, {.is_long = count > DualModel::kTextsPerPass});
}

}  // namespace vitrail::serve
