// SPDX-License-Identifier: Apache-2.0
#pragma once
// Parameters of a checkpoint with a LoRA adapter.
#include <map>
#include <string>
#include <vector>

#include "vitrail/weights/checkpoint_params_internal.h"
#include "vitrail/weights/lora_adapter.h"

namespace vitrail::weights {

// An adapter for the native names.  A name of the adapter is one of the checkpoint's tensors, or one that it would have
// under the key map, or native.  It may lack leading components of the checkpoint's name, or have more: "vit.encoder…".
struct NativeAdapter {
  struct Part {
    LoraAdapter::Part part;
    int64_t index = 0, count = 1;  // part `index` of `count` equal parts of the rows
  };
  std::multimap<std::string, Part> parts;
  std::map<std::string, Tensor> tensors;
};

// Throws Error for a layout that the key map rearranges, as that of convolutions of other libraries.
NativeAdapter native_adapter(const LoraAdapter& adapter, const Checkpoint& checkpoint, const KeyMap& map);

// What `params` gives, with the adapter's changes.  `adapter`: null for none.
class AdaptedParams : public ParamProvider {
 public:
  AdaptedParams(CheckpointParams& params, const NativeAdapter* adapter, std::string where)
      : params_(params), adapter_(adapter), where_(std::move(where)) {}
  Tensor get(const std::string& path, const Shape& shape, const Initializer& init) override;
  bool has(const std::string& path) const override;
  void finish() override;  // also throws Error for what is adapted and not in the model

 private:
  Tensor replaced(const std::string& path, const Shape& shape);
  void note_finite(const std::string& path, const Tensor& tensor);

  CheckpointParams& params_;
  const NativeAdapter* adapter_;
  std::string where_;  // the adapter's file
  std::set<std::string> taken_;
  std::vector<std::string> problems_;
};

}  // namespace vitrail::weights
