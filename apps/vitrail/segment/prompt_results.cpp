// SPDX-License-Identifier: Apache-2.0
#include "apps/vitrail/segment/prompt_results.h"

#include <array>
#include <limits>
#include <utility>

#include "apps/vitrail/output/output.h"

namespace vitrail::app {

PromptResults::PromptResults(const std::string& logits, int64_t masks, int64_t mask_size) {
  if (logits.empty()) return;
  logits_.emplace(logits, DType::f32, std::array{masks, mask_size, mask_size});
  row_ = Tensor::empty({masks, mask_size, mask_size});
}

void PromptResults::add(size_t i, PromptResult result) {
  if (!logits_) result.logits = {};
  held_.emplace(i, std::move(result));
  for (auto first = held_.begin(); first != held_.end() && first->first == next_; first = held_.erase(first)) {
    write(first->second);
    ++next_;
  }
}

void PromptResults::write(const PromptResult& result) {
  write_output(result.text);
  if (!logits_) return;
  row_.copy_(Tensor::full({1}, std::numeric_limits<double>::quiet_NaN()));
  if (result.logits.defined()) row_.narrow(0, 0, result.logits.size(0)).copy_(result.logits);
  logits_->write_rows(row_.data<float>(), 1);
}

void PromptResults::finish() {
  if (logits_) logits_->finish();
}

}  // namespace vitrail::app
