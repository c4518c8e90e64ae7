// SPDX-License-Identifier: Apache-2.0
// Fuzzes the index of a sharded checkpoint.  Every input must give shards in the folder or a vitrail::Error.
#include <cstdlib>

#include "fuzz/inputs.h"
#include "vitrail/weights/hub_layout.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace vitrail;
  static const fuzz::Folder folder;
  static const std::filesystem::path shard = folder.write("a.safetensors", "");
  folder.write("model.safetensors.index.json", fuzz::text_of(data, size));
  fuzz::attempt([&] {
    for (const auto& file : weights::find_hub_weights(folder.path())) {
      if (file.parent_path() != folder.path()) std::abort();
    }
  });
  return 0;
}
