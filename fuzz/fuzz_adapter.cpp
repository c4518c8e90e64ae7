// SPDX-License-Identifier: Apache-2.0
// Fuzzes LoRA adapters: adapter_config.json up to the first zero byte, then adapter_model.safetensors.  Every input
// must give an adapter whose parts fit a weight, or a vitrail::Error.
#include <cstdlib>

#include "fuzz/inputs.h"
#include "vitrail/weights/lora_adapter.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace vitrail;
  constexpr int64_t kMaxElements = 1 << 16;
  static const fuzz::Folder folder;
  std::string_view text = fuzz::text_of(data, size);
  folder.write("adapter_config.json", fuzz::cut(text, '\0'));
  folder.write("adapter_model.safetensors", text);
  fuzz::attempt([&] {
    for (const auto& [name, part] : weights::read_lora_adapter(folder.path()).parts) {
      const Shape shape{part.b.size(0), part.a.size(1)};
      if (shape[1] > 0 && shape[0] > kMaxElements / shape[1]) continue;
      if (weights::add_lora_part(Tensor::zeros(shape), part).shape() != shape) std::abort();
    }
  });
  return 0;
}
