// SPDX-License-Identifier: Apache-2.0
#include "vitrail/infer/program.h"

#include <chrono>

#include "vitrail/base/call_limit_internal.h"

namespace vitrail::infer {

void Program::run(const Frame& frame) const {
  for (const Step& step : steps_) {
    check_call_limit();
    step.run(frame);
  }
}

void Program::run(const Frame& frame, const std::function<void(size_t, double)>& after_step) const {
  using Clock = std::chrono::steady_clock;
  for (size_t i = 0; i < steps_.size(); ++i) {
    const auto start = Clock::now();
    steps_[i].run(frame);
    after_step(i, std::chrono::duration<double>(Clock::now() - start).count());
  }
}

std::string Program::listing() const {
  std::string text;
  for (const Step& step : steps_) text += step.text + "\n";
  return text + "buffers " + std::to_string(buffer_bytes_) + " bytes\n";
}

}  // namespace vitrail::infer
