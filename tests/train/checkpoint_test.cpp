// SPDX-License-Identifier: Apache-2.0
#include "vitrail/train/run/checkpoint.h"

#include <algorithm>
#include <cstring>
#include <map>

#include "tests/support/errors.h"
#include "tests/support/full_disk.h"
#include "tests/support/golden.h"
#include "tests/train/training_fixture.h"
#include "vitrail/train/run/checkpoint_internal.h"
#include "vitrail/weights/safetensors.h"

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

// Each member with a value of its own.
CheckpointState full_state() {
  CheckpointState state = state_at(41);
  state.position = {.epoch = 3, .step_in_epoch = 14, .step = 41, .batch_images = 96};
  state.counters = "{\"a\": 1}";
  state.class_names = {"cat", "b\"ird", ""};
  state.image_sets = {{"training", 90, UINT32_MAX}, {"validation", 0, 0}};
  state.preprocessing = "8×8, bicubic";
  state.fingerprint = {.build = "12-34", .isa = "avx2", .threads = 7, .ranks = 5};
  return state;
}

TEST(Checkpoint, KeepsEachMember) {
  const fs::path path = checkpoint_path();
  save_checkpoint(path, full_state());
  const CheckpointState state = load_checkpoint(path);
  expect_same(state, full_state());
  EXPECT_EQ(state.position.batch_images, 96);
  EXPECT_EQ(state.counters, "{\"a\": 1}");
  EXPECT_EQ(state.class_names, full_state().class_names);
  EXPECT_EQ(state.image_sets, full_state().image_sets);
  EXPECT_EQ(state.preprocessing, "8×8, bicubic");
  EXPECT_EQ(state.fingerprint.build, "12-34");
  EXPECT_EQ(state.fingerprint.isa, "avx2");
  EXPECT_EQ(state.fingerprint.threads, 7);
  EXPECT_EQ(state.fingerprint.ranks, 5);
}

TEST(Checkpoint, HasItsMembersInTheMetadata) {
  const fs::path path = checkpoint_path();
  save_checkpoint(path, full_state());
  const weights::Checkpoint file = weights::Checkpoint::open(path);
  std::map<std::string, std::string> metadata = file.metadata();
  EXPECT_FALSE(metadata["checksum"].empty());
  metadata.erase("checksum");
  const std::map<std::string, std::string> expected{
      {"format", "vitrail training checkpoint 1"},
      {"position", R"({"epoch":3,"step_in_epoch":14,"step":41,"batch_images":96})"},
      {"recipe", "{\"epochs\": 5}\n"},
      {"counters", "{\"a\": 1}"},
      {"class_names", R"(["cat","b\"ird",""])"},
      {"image_sets",
       R"([{"name":"training","images":90,"checksum":4294967295},{"name":"validation","images":0,"checksum":0}])"},
      {"preprocessing", "8×8, bicubic"},
      {"fingerprint", R"({"build":"12-34","isa":"avx2","threads":7,"ranks":5})"}};
  EXPECT_EQ(metadata, expected);
  std::vector<std::string> names = file.names();
  std::sort(names.begin(), names.end());
  EXPECT_EQ(names, (std::vector<std::string>{"average/head.weight", "model/head.weight",
                                             "optimizer/exp_avg.head.weight", "optimizer/step"}));
}

// A file of another program or version, with these changes of the metadata.
fs::path changed_checkpoint(const std::map<std::string, std::string>& changes) {
  const fs::path path = checkpoint_path(), changed = path.parent_path() / "changed.safetensors";
  save_checkpoint(path, full_state());
  const weights::Checkpoint file = weights::Checkpoint::open(path);
  std::map<std::string, std::string> metadata = file.metadata();
  for (const auto& [key, value] : changes) {
    if (value.empty()) {
      metadata.erase(key);
    } else {
      metadata[key] = value;
    }
  }
  std::vector<std::pair<std::string, Tensor>> tensors;
  for (const std::string& name : file.names()) tensors.emplace_back(name, file.tensor(name).clone());
  weights::write_safetensors(changed, tensors, metadata);
  return changed;
}

TEST(Checkpoint, OfAnotherFormatOrWithoutItsChecksumIsRefused) {
  const auto refusal = [](const std::map<std::string, std::string>& changes) {
    const fs::path path = changed_checkpoint(changes);
    const std::string message = error_of([&] { load_checkpoint(path); });
    EXPECT_TRUE(message.starts_with(path.string() + ": expected ")) << message;
    return message.substr(std::min(message.size(), path.string().size() + 11));
  };
  EXPECT_EQ(refusal({{"format", "vitrail training checkpoint 2"}}),
            "vitrail training checkpoint 1, got vitrail training checkpoint 2");
  EXPECT_EQ(refusal({{"format", ""}}), "vitrail training checkpoint 1, got another file");
  EXPECT_TRUE(contains(refusal({{"checksum", ""}}), "the checksum in its metadata, got "));
  EXPECT_TRUE(refusal({{"checksum", "7"}}).starts_with("the checksum 7, got "));
  EXPECT_TRUE(refusal({{"recipe", "{}"}}).ends_with(": the file is damaged"));
  EXPECT_TRUE(refusal({{"extra", "x"}}).ends_with(": the file is damaged"));
}

// A position or a fingerprint, read without the checksum.
std::string refusal_of(const std::string& key, const std::string& value) {
  const fs::path path = changed_checkpoint({{key, value}});
  try {
    read_checkpoint(weights::Checkpoint::open(path), Checksum::ignore);
  } catch (const Error& error) {
    const std::string start = path.string() + ": expected a checkpoint's position and fingerprint, got ";
    const std::string text = error.what();
    return text.starts_with(start) ? text.substr(start.size()) : "another error: " + text;
  }
  return "";
}

TEST(Checkpoint, PositionsAndFingerprintsHaveLimits) {
  const auto position = [](const char* epoch, const char* step_in_epoch, const char* step, const char* images) {
    return refusal_of("position", str("{\"epoch\":", epoch, ",\"step_in_epoch\":", step_in_epoch, ",\"step\":", step,
                                      ",\"batch_images\":", images, "}"));
  };
  EXPECT_EQ(position("1000000", "1099511627776", "9007199254740992", "4194304"), "");
  EXPECT_ERROR(position("1000001", "0", "0", "0"), "position.epoch", "1000001");
  EXPECT_ERROR(position("0", "1099511627777", "0", "0"), "position.step_in_epoch", "1099511627777");
  EXPECT_ERROR(position("0", "0", "9007199254740993", "0"), "position.step", "9007199254740993");
  EXPECT_ERROR(position("0", "0", "0", "4194305"), "position.batch_images", "4194305");
  const auto print = [](const char* threads, const char* ranks) {
    return refusal_of("fingerprint", str(R"({"build":"b","isa":"i","threads":)", threads, ",\"ranks\":", ranks, "}"));
  };
  EXPECT_EQ(print("1", "1"), "");
  EXPECT_EQ(print("1000000", "1000000"), "");
  EXPECT_ERROR(print("0", "1"), "fingerprint.threads", "0");
  EXPECT_ERROR(print("1", "0"), "fingerprint.ranks", "0");
  EXPECT_ERROR(print("1000001", "1"), "fingerprint.threads", "1000001");
  EXPECT_ERROR(print("1", "1000001"), "fingerprint.ranks", "1000001");
  EXPECT_NE(refusal_of("position", "{}"), "");
  EXPECT_NE(refusal_of("fingerprint", "{}"), "");
  EXPECT_NE(refusal_of("class_names", "{"), "");
  EXPECT_NE(refusal_of("image_sets", "[1]"), "");
  EXPECT_ERROR(refusal_of("image_sets", R"([{"name":"test","images":-1,"checksum":0}])"), "image_sets.images", "-1");
}

TEST(Checkpoint, OfAnOldVersionLacksSomeMembers) {
  const fs::path path = changed_checkpoint(
      {{"class_names", ""}, {"image_sets", ""}, {"position", R"({"epoch":1,"step_in_epoch":2,"step":3})"}});
  const CheckpointState state = read_checkpoint(weights::Checkpoint::open(path), Checksum::ignore);
  EXPECT_TRUE(state.class_names.empty());
  EXPECT_TRUE(state.image_sets.empty());
  EXPECT_EQ(state.position.epoch, 1);
  EXPECT_EQ(state.position.step_in_epoch, 2);
  EXPECT_EQ(state.position.step, 3);
  EXPECT_EQ(state.position.batch_images, 0);
  EXPECT_EQ(state.model.size(), 1u);
}

TEST(Checkpoint, ThePreviousOneIsBesideIt) {
  EXPECT_EQ(previous_checkpoint("run/checkpoints/last.safetensors"), "run/checkpoints/previous.safetensors");
  EXPECT_EQ(previous_checkpoint("a.b/last.x"), "a.b/previous.x");
}

TEST(Checkpoint, TheWarningNamesTheStepAndTheReason) {
  const fs::path path = checkpoint_path();
  save_checkpoint(path, state_at(8));
  save_checkpoint(path, state_at(9));
  write_file(path, "");
  const Warnings warnings;
  EXPECT_EQ(load_latest(path).position.step, 8);
  ASSERT_EQ(warnings.messages.size(), 1u);
  EXPECT_TRUE(
      warnings.messages[0].starts_with(str("the last checkpoint cannot be read, resuming from the previous one (",
                                           previous_checkpoint(path).string(), ", step 8): ", path.string())))
      << warnings.messages[0];
  fs::remove(previous_checkpoint(path));
  EXPECT_TRUE(error_of([&] { load_latest(path); }).starts_with(path.string()));
}

TEST(Fingerprint, AllOfItsDifferencesAreNamed) {
  EXPECT_EQ(
      differences({"a", "avx2", 2, 1}, {"b", "neon", 4, 3}),
      (std::vector<std::string>{"build: a → b", "instruction set: avx2 → neon", "threads: 2 → 4", "processes: 1 → 3"}));
  const Fingerprint here = fingerprint(3, 2);
  EXPECT_EQ(here.threads, 3);
  EXPECT_EQ(here.ranks, 2);
  EXPECT_TRUE(contains(here.build, "-")) << "the size and the checksum of the program: " << here.build;
  EXPECT_FALSE(here.isa.empty());
}

// CRC-32C bit by bit: the reflected polynomial 0x82F63B78.
uint32_t castagnoli(const std::string& bytes) {
  uint32_t crc = 0xFFFFFFFF;
  for (const char c : bytes) {
    crc ^= static_cast<uint8_t>(c);
    for (int bit = 0; bit < 8; ++bit) crc = (crc >> 1) ^ ((crc & 1) != 0 ? 0x82F63B78 : 0);
  }
  return ~crc;
}

// Files of other versions of the program have it, too: names, dtypes and shapes with their end, the bytes of the
// tensors in the order of names, and then the metadata.
TEST(Checkpoint, ItsChecksumIsOfAllContents) {
  const fs::path path = checkpoint_path();
  CheckpointState state = full_state();
  const Tensor model = Tensor::from<float>({2, 1}, {1.5F, -2}), average = Tensor::from<double>({}, {0.25});
  state.model = {{"w", model}};
  state.optimizer = {{"step", Tensor::from<int64_t>({}, {41})}, {"none", Tensor::zeros({0, 3})}};
  state.average = {{"w", average}};
  save_checkpoint(path, state);
  const auto metadata = weights::Checkpoint::open(path).metadata();
  std::string contents;
  const auto add = [&](const std::string& text) { contents += text + '\0'; };
  const auto add_bytes = [&](const auto& value) {
    contents.append(reinterpret_cast<const char*>(&value), sizeof value);
  };
  add("average/w"), add("f64[]"), add_bytes(0.25);
  add("model/w"), add("f32[2, 1]"), add_bytes(1.5F), add_bytes(-2.0F);
  add("optimizer/none"), add("f32[0, 3]");
  add("optimizer/step"), add("i64[]"), add_bytes(int64_t{41});
  for (const char* key :
       {"class_names", "counters", "fingerprint", "format", "image_sets", "position", "preprocessing", "recipe"})
    add(key), add(metadata.at(key));
  EXPECT_EQ(metadata.at("checksum"), std::to_string(castagnoli(contents)));
}

}  // namespace
}  // namespace vitrail::train
