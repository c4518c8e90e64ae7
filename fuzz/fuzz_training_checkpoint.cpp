// SPDX-License-Identifier: Apache-2.0
// Fuzzes the reader of training checkpoints: the safetensors file, its metadata, and the counters inside.  Every input
// must give a state or a vitrail::Error.
#include "fuzz/inputs.h"
#include "vitrail/train/recipe/recipe.h"
#include "vitrail/train/run/checkpoint_internal.h"
#include "vitrail/train/run/counters_internal.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace vitrail;
  const std::span<const std::byte> bytes = fuzz::bytes_of(fuzz::text_of(data, size));
  fuzz::attempt([&] {
    const auto file = weights::Checkpoint::open(weights::FileBytes::hold({bytes.begin(), bytes.end()}, "fuzz"));
    fuzz::attempt([&] { train::read_checkpoint(file, train::Checksum::verify); });
    const train::CheckpointState state = train::read_checkpoint(file, train::Checksum::ignore);
    fuzz::attempt([&] { train::Counters::from_json(state.counters).to_json(); });
    fuzz::attempt([&] { train::recipe_differences(state.recipe, "{}"); });
    train::differences(state.fingerprint, {.build = "b", .isa = "scalar", .threads = 1, .ranks = 1});
  });
  return 0;
}
