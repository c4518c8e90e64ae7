// SPDX-License-Identifier: Apache-2.0
#include "vitrail/weights/native_tensors.h"

#include <gtest/gtest.h>

#include "tests/support/errors.h"
#include "tests/support/messages.h"
#include "tests/support/paths.h"
#include "vitrail/weights/safetensors.h"

namespace vitrail::weights {
namespace {

using Names = std::vector<std::string>;

constexpr const char* kKeys = R"~({"name": "parts", "rules": [
  {"from": "q\\.(weight|bias)", "to": "blocks.qkv.$1", "part": [0, 2]},
  {"from": "k\\.(weight|bias)", "to": "blocks.qkv.$1", "part": [1, 2]},
  {"from": "unused", "drop": true}]})~";

Checkpoint file_of(const std::vector<std::pair<std::string, Shape>>& shapes) {
  const std::filesystem::path path = testing::scratch_folder() / "model.safetensors";
  std::vector<std::pair<std::string, Tensor>> tensors;
  for (const auto& [name, shape] : shapes) tensors.emplace_back(name, Tensor::zeros(shape));
  write_safetensors(path, tensors);
  return Checkpoint::open(path);
}

TEST(TensorsBeside, AreThoseOfNoNativeTensor) {
  const KeyMap map = KeyMap::parse(kKeys, "test");
  const Checkpoint file = file_of({{"q.weight", {2, 3}}, {"k.weight", {2, 3}}, {"head.weight", {4}}, {"unused", {1}}});
  EXPECT_EQ(tensors_beside(file, map, {{"blocks.qkv.weight", {4, 3}}}), (Names{"head.weight", "unused"}));
  EXPECT_EQ(tensors_beside(file, map, {}).size(), 4U);
}

// What an int8 file has beside a weight belongs to it.
TEST(TensorsBeside, AreNoScalesAndCorrectionsOfNativeTensors) {
  const KeyMap map = KeyMap::parse(kKeys, "test");
  const std::string weight = "blocks.qkv.weight";
  const Checkpoint file = file_of({{weight, {4, 3}},
                                   {weight + "_scale", {4}},
                                   {weight + "_correction", {4, 3}},
                                   {weight + "_correction_scale", {4}},
                                   {"blocks.qkv.weight_other", {4}}});
  EXPECT_EQ(tensors_beside(file, map, {{weight, {4, 3}}}), Names{"blocks.qkv.weight_other"});
}

// The error for native tensors of a file: behind the path of the file.
std::string error_for(const Checkpoint& file, const KeyMap& map, const std::string& name, const Shape& shape) {
  const std::string message = testing::error_of([&] { tensors_beside(file, map, {{name, shape}}); });
  return message.starts_with(file.path() + ": ") ? message.substr(file.path().size() + 2) : message;
}

TEST(TensorsBeside, ANativeTensorNeedsItsShape) {
  const KeyMap map = KeyMap::parse(kKeys, "test");
  const Checkpoint file = file_of({{"q.weight", {2, 3}}, {"k.weight", {2, 3}}, {"q.bias", {2}}});
  EXPECT_ERROR(error_for(file, map, "blocks.qkv.weight", {4, 2}), "blocks.qkv.weight", "[4, 3]");
  EXPECT_ERROR(error_for(file, map, "blocks.qkv.bias", {4}), "blocks.qkv.bias", "part 2 of 2 is missing");
  EXPECT_ERROR(error_for(file, map, "absent", {4}), "absent", "none");
}

TEST(TensorsBeside, TheKeyMapMustKeepNativeNames) {
  const KeyMap map = KeyMap::parse(R"~({"name": "moves", "rules": [
    {"from": "a", "to": "b"}, {"from": "b", "to": "c"}]})~",
                                   "test");
  EXPECT_ERROR(error_for(file_of({{"a", {1}}}), map, "b", {1}), "b", "c");
}

}  // namespace
}  // namespace vitrail::weights
