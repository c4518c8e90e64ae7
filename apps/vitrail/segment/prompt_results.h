// SPDX-License-Identifier: Apache-2.0
#pragma once
// The results of prompts in their order, on standard output and in the array of --logits.
#include <cstddef>
#include <map>
#include <optional>
#include <string>

#include "vitrail/base/npy.h"
#include "vitrail/tensor/tensor.h"

namespace vitrail::app {

struct PromptResult {
  std::string text = {};  // for standard output
  Tensor logits = {};     // [masks, h, w]; undefined: a row of NaN
};

class PromptResults {
 public:
  // logits: FILE.npy, or empty.  masks: the second axis of the array; prompts with fewer masks are filled with NaN.
  PromptResults(const std::string& logits, int64_t masks, int64_t mask_size);

  // The result of the prompt that is the i-th of all.  It is held until those before it are written.
  void add(size_t i, PromptResult result);
  void finish();

 private:
  void write(const PromptResult& result);

  std::optional<NpyWriter> logits_;
  Tensor row_;  // [masks, h, w]
  std::map<size_t, PromptResult> held_;
  size_t next_ = 0;
};

}  // namespace vitrail::app
