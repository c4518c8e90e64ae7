// SPDX-License-Identifier: Apache-2.0
#include "vitrail/train/checkpoint.h"

#include <algorithm>
#include <cstring>

#include "tests/support/full_disk.h"
#include "tests/support/golden.h"
#include "tests/train/training_fixture.h"

namespace vitrail::train {
namespace {

CheckpointState state_at(int64_t step) {
  CheckpointState state;
  state.position = {3, 14, step};
  state.recipe = "{\"epochs\": 5}\n";
  state.counters = "{}";
  state.fingerprint = {"b", "avx2", 2, 1};
  state.model = {{"head.weight", Tensor::randn({64, 32}, static_cast<uint64_t>(step))}};
  state.optimizer = {{"step", Tensor::from<int64_t>({}, {step})}, {"exp_avg.head.weight", Tensor::randn({64, 32}, 1)}};
  state.average = {{"head.weight", Tensor::randn({64, 32}, 2)}};
  return state;
}

void expect_same(const CheckpointState& a, const CheckpointState& b) {
  EXPECT_EQ(a.position.epoch, b.position.epoch);
  EXPECT_EQ(a.position.step_in_epoch, b.position.step_in_epoch);
  EXPECT_EQ(a.position.step, b.position.step);
  EXPECT_EQ(a.recipe, b.recipe);
  EXPECT_EQ(a.counters, b.counters);
  EXPECT_TRUE(differences(a.fingerprint, b.fingerprint).empty());
  for (const auto& [x, y] : {std::pair{a.model, b.model}, {a.optimizer, b.optimizer}, {a.average, b.average}}) {
    ASSERT_EQ(x.size(), y.size());
    for (const nn::NamedTensor& tensor : x) {
      const auto other = std::find_if(y.begin(), y.end(), [&](const auto& t) { return t.name == tensor.name; });
      ASSERT_NE(other, y.end()) << tensor.name;
      EXPECT_TRUE(testing::close(tensor.tensor, other->tensor, 0)) << tensor.name;
    }
  }
}

fs::path checkpoint_path() { return testing::scratch_folder() / "last.safetensors"; }

TEST(Checkpoint, LoadsTheSavedState) {
  const fs::path path = checkpoint_path();
  save_checkpoint(path, state_at(41));
  const CheckpointState state = load_checkpoint(path);
  EXPECT_EQ(state.position.epoch, 3);
  EXPECT_EQ(state.position.step_in_epoch, 14);
  EXPECT_EQ(state.position.step, 41);
  EXPECT_EQ(state.recipe, "{\"epochs\": 5}\n");
  EXPECT_EQ(state.fingerprint.isa, "avx2");
  ASSERT_EQ(state.model.size(), 1u);
  EXPECT_EQ(state.model[0].name, "head.weight");
  const Tensor expected = state_at(41).model[0].tensor;
  EXPECT_EQ(0, std::memcmp(state.model[0].tensor.raw(), expected.raw(), 64 * 32 * 4));
  EXPECT_EQ(state.optimizer.size(), 2u);
  EXPECT_EQ(state.average.size(), 1u);
  EXPECT_FALSE(fs::exists(previous_checkpoint(path)));
}

TEST(Checkpoint, KeepsThePreviousOne) {
  const fs::path path = checkpoint_path();
  for (const int64_t step : {1, 2, 3}) save_checkpoint(path, state_at(step));
  EXPECT_EQ(load_checkpoint(path).position.step, 3);
  EXPECT_EQ(load_checkpoint(previous_checkpoint(path)).position.step, 2);
  int files = 0;
  for ([[maybe_unused]] const auto& entry : fs::directory_iterator(path.parent_path())) ++files;
  EXPECT_EQ(files, 2);
}

TEST(Checkpoint, TruncatedFallsBackToThePreviousOneWithAWarning) {
  const fs::path path = checkpoint_path();
  save_checkpoint(path, state_at(1));
  save_checkpoint(path, state_at(2));
  const auto size = fs::file_size(path);
  for (const auto kept : {size - 1, size / 2, uintmax_t{20}, uintmax_t{0}}) {
    fs::resize_file(path, kept);
    Warnings warnings;
    EXPECT_EQ(load_latest(path).position.step, 1);
    EXPECT_TRUE(warnings.any("the last checkpoint cannot be read, resuming from the previous one"));
  }
  fs::remove(path);
  Warnings warnings;
  EXPECT_EQ(load_latest(path).position.step, 1);
}

TEST(Checkpoint, FlippedBitsAreDetected) {
  const fs::path path = checkpoint_path();
  save_checkpoint(path, state_at(1));
  const std::string original = read_text(path);
  uint64_t header = 0;  // its length is the first eight bytes; the metadata is in it
  std::memcpy(&header, original.data(), sizeof header);
  for (size_t at = 0; at < original.size(); at += at < header + 8 ? 1 : 97) {
    std::string damaged = original;
    damaged[at] = static_cast<char>(damaged[at] ^ 4);
    write_file(path, damaged);
    try {
      const CheckpointState state = load_checkpoint(path);
      // The checksum does not cover the spaces that pad the header; nothing else may load, and never another state.
      EXPECT_EQ(original[at], ' ') << at;
      expect_same(state, state_at(1));
    } catch (const Error&) {
    }
  }
}

TEST(Checkpoint, NamesBothReasonsIfNeitherCanBeRead) {
  const fs::path path = checkpoint_path();
  save_checkpoint(path, state_at(1));
  save_checkpoint(path, state_at(2));
  fs::resize_file(path, 100);
  fs::resize_file(previous_checkpoint(path), 100);
  const std::string message = error_of([&] { load_latest(path); });
  EXPECT_TRUE(contains(message, "last.safetensors")) << message;
  EXPECT_TRUE(contains(message, "the previous checkpoint cannot be read either")) << message;
}

TEST(Checkpoint, AFullDiskKeepsTheLastOne) {
  const fs::path path = checkpoint_path();
  save_checkpoint(path, state_at(1));
  save_checkpoint(path, state_at(2));
  std::string message;
  {
    const testing::FullDisk full(10000);
    message = error_of([&] { save_checkpoint(path, state_at(3)); });
  }
  EXPECT_TRUE(contains(message, "last.safetensors")) << message;
  EXPECT_EQ(load_checkpoint(path).position.step, 2);
  EXPECT_EQ(load_checkpoint(previous_checkpoint(path)).position.step, 1);
  int files = 0;
  for ([[maybe_unused]] const auto& entry : fs::directory_iterator(path.parent_path())) ++files;
  EXPECT_EQ(files, 2);
}

TEST(Fingerprint, DifferencesAreNamed) {
  const std::vector<std::string> lines = differences({"a", "avx2", 2, 1}, {"b", "avx2", 4, 1});
  ASSERT_EQ(lines.size(), 2u);
  EXPECT_EQ(lines[0], "build: a → b");
  EXPECT_EQ(lines[1], "threads: 2 → 4");
  EXPECT_TRUE(differences(fingerprint(2, 1), fingerprint(2, 1)).empty());
}

}  // namespace
}  // namespace vitrail::train
