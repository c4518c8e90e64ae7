// SPDX-License-Identifier: Apache-2.0
// Checkpoints of one and of several files, and the formats that are told apart by their content.
#include "vitrail/weights/checkpoint.h"

#include <gtest/gtest.h>

#include "tests/support/errors.h"
#include "tests/support/messages.h"
#include "tests/support/paths.h"
#include "tests/support/torch_save.h"
#include "vitrail/base/zip_writer_internal.h"
#include "vitrail/weights/safetensors.h"

namespace vitrail::weights {
namespace {

namespace fs = std::filesystem;
using Names = std::vector<std::string>;
using NamedValues = std::vector<std::pair<std::string, float>>;

fs::path written(const fs::path& path, const NamedValues& values,
                 const std::map<std::string, std::string>& metadata = {}) {
  std::vector<std::pair<std::string, Tensor>> tensors;
  for (const auto& [name, value] : values) tensors.emplace_back(name, Tensor::full({1}, value));
  write_safetensors(path, tensors, metadata);
  return path;
}

std::string open_error(const std::string& bytes, const std::string& name = "file") {
  const auto* data = reinterpret_cast<const std::byte*>(bytes.data());
  return testing::error_of([&] { Checkpoint::open(FileBytes::hold({data, data + bytes.size()}, name)); });
}

TEST(Checkpoint, OfSeveralFilesHasTheTensorsOfAll) {
  const fs::path folder = testing::scratch_folder();
  const fs::path one = written(folder / "one", {{"c", 1}, {"a", 2}}, {{"k", "of one"}}),
                 two = written(folder / "two", {{"d", 3}, {"b", 4}, {"e", 5}}, {{"k", "of two"}});
  const Checkpoint checkpoint = Checkpoint::open(std::vector{one, two});
  EXPECT_EQ(checkpoint.path(), one.string());
  EXPECT_EQ(checkpoint.format(), "safetensors");
  EXPECT_EQ(checkpoint.metadata().at("k"), "of one");
  EXPECT_EQ(checkpoint.names(), (Names{"a", "c", "b", "d", "e"}));
  for (const auto& [name, value] : NamedValues{{"a", 2}, {"b", 4}, {"c", 1}, {"d", 3}, {"e", 5}}) {
    EXPECT_TRUE(checkpoint.has(name));
    EXPECT_EQ(checkpoint.info(name).name, name);
    EXPECT_EQ(checkpoint.tensor(name).data<float>()[0], value) << name;
    EXPECT_FALSE(checkpoint.beside(name));
  }
  EXPECT_FALSE(checkpoint.has("f"));
  const std::string none = one.string() + ": expected a tensor called \"f\", got none of that name";
  EXPECT_EQ(testing::error_of([&] { checkpoint.tensor("f"); }), none);
  EXPECT_EQ(testing::error_of([&] { checkpoint.info("f"); }), none);
  written(two, {{"x", 1}, {"c", 2}});
  EXPECT_ERROR(testing::error_of([&] { Checkpoint::open(std::vector{one, two}); }), one.string(), "\"c\" twice");
  EXPECT_ERROR(testing::error_of([] { Checkpoint::open(std::vector<fs::path>{}); }), "checkpoint", "none");
}

TEST(Checkpoint, WrappersAroundAllFilesAreRemoved) {
  const fs::path folder = testing::scratch_folder();
  const fs::path one = written(folder / "one", {{"module.b", 1}, {"module.a", 2}}),
                 two = written(folder / "two", {{"module.c", 3}}), other = written(folder / "other", {{"d", 4}});
  const Checkpoint all = Checkpoint::open(std::vector{one, two}), some = Checkpoint::open(std::vector{one, other});
  EXPECT_EQ(all.names(), (Names{"a", "b", "c"}));
  EXPECT_EQ(all.tensor("c").data<float>()[0], 3);
  EXPECT_EQ(some.names(), (Names{"module.a", "module.b", "d"}));
  EXPECT_TRUE(Checkpoint::open(written(folder / "none", {})).names().empty());
}

TEST(Checkpoint, AFileOfAnotherKindIsAnErrorThatSaysWhatItIs) {
  const std::string known = "file: expected a safetensors file, a PyTorch archive or an .npz, got ";
  EXPECT_ERROR(open_error(""), "file", "an empty file");
  EXPECT_EQ(open_error("hello"), known + "an unknown format or a damaged file (5 bytes)");
  EXPECT_EQ(open_error("12345678"), known + "an unknown format or a damaged file (8 bytes)");
  EXPECT_EQ(open_error("1234567{"), known + "an unknown format or a damaged file (8 bytes)");
  EXPECT_ERROR(open_error("12345678{"), "file", "4050765991979987505");
  EXPECT_EQ(open_error("GGUF5678{").substr(0, known.size()), known);
  EXPECT_ERROR(open_error("version https://git-lfs.github.com/spec/v1\n"), "file",
               "a Git LFS pointer: fetch the file itself with `git lfs pull`");
  EXPECT_ERROR(open_error("PK and no archive"), "file", "a file of 17 bytes");
  EXPECT_EQ(open_error("\x80\x02.....").substr(0, 19), "file: pickle, byte ");
}

TEST(Checkpoint, AnArchiveOfAnotherKindIsAnErrorThatSaysWhatItIs) {
  const fs::path folder = testing::scratch_folder();
  const auto error = [&](const std::string& name) {
    ZipWriter writer(folder / name);
    writer.begin("notes.txt");
    writer.write("text", 4);
    writer.end();
    writer.commit();
    const std::string text = testing::error_of([&] { Checkpoint::open(folder / name); });
    return text.substr((folder / name).string().size());
  };
  EXPECT_EQ(error("model.zip"),
            ": expected a PyTorch archive or an .npz, got a zip archive with neither data.pkl nor .npy files");
  EXPECT_EQ(
      error("model.keras"),
      ": expected a PyTorch archive or an .npz, got an HDF5 file of Keras or TensorFlow; save the arrays by name as "
      "an .npz file (numpy.savez) or as safetensors");
}

TEST(Checkpoint, ThePrefixOfTheModelIsRemovedAndOthersStayBeside) {
  const fs::path path = testing::scratch_folder() / "file";
  written(path, {{"net.patch_embed.proj.weight", 1},
                 {"net.blocks.0.attn.qkv.weight", 2},
                 {"net.blocks.0.norm1.weight", 3},
                 {"blocks.0.norm1.weight", 4},
                 {"loss", 5}});
  Checkpoint checkpoint = Checkpoint::open(path);
  checkpoint.strip_model_prefix();
  EXPECT_EQ(checkpoint.names(),
            (Names{"loss", "blocks.0.attn.qkv.weight", "blocks.0.norm1.weight", "patch_embed.proj.weight"}));
  EXPECT_EQ(checkpoint.tensor("blocks.0.norm1.weight").data<float>()[0], 3);
  EXPECT_TRUE(checkpoint.beside("loss"));
  EXPECT_FALSE(checkpoint.beside("blocks.0.norm1.weight"));
  EXPECT_FALSE(checkpoint.has("net.blocks.0.norm1.weight"));
  EXPECT_EQ(checkpoint.tensors().size(), 4u);
}

TEST(Checkpoint, TheChoiceOfThreeModelsIsSaid) {
  NamedValues values;
  for (const char* prefix : {"b.", "ema.", "a."}) {
    for (const char* name : {"patch_embed.proj.weight", "blocks.0.attn.qkv.weight", "blocks.0.norm1.weight"})
      values.emplace_back(std::string(prefix) + name, 1.F);
  }
  Checkpoint checkpoint = Checkpoint::open(written(testing::scratch_folder() / "file", values));
  const testing::Warnings warnings;
  checkpoint.strip_model_prefix();
  ASSERT_EQ(warnings.messages.size(), 1u);
  EXPECT_EQ(warnings.messages[0],
            checkpoint.path() + ": uses the weights under \"ema.\"; the file also has weights under \"a.\", \"b.\"");
  EXPECT_TRUE(checkpoint.beside("a.blocks.0.norm1.weight"));
}

// Objects beside tensors lose the same prefixes.
TEST(Checkpoint, ObjectsHaveTheNamesOfTensors) {
  testing::TorchSave save;
  const std::string array = testing::pickled_call("numpy", "ndarray");
  std::vector<std::pair<std::string, Tensor>> tensors;
  for (const char* name : {"patch_embed.proj.weight", "blocks.0.attn.qkv.weight", "blocks.0.norm1.weight"})
    tensors.emplace_back(name, Tensor::full({1}, 1));
  tensors.emplace_back("x.1._orig_mod.w", Tensor::full({1}, 1));
  std::string dict = save.state_dict(tensors, "module.net.");
  dict += "(" + testing::pickled_text("module.net.x.0._orig_mod.y") + array + testing::pickled_text("module.z") +
          array + testing::pickled_text("own") + array + "u";
  const std::string bytes = save.file(dict);
  const auto* data = reinterpret_cast<const std::byte*>(bytes.data());
  Checkpoint checkpoint = Checkpoint::open(FileBytes::hold({data, data + bytes.size()}, "file.pth"));
  const auto names = [&] {
    Names result;
    for (const auto& [name, global] : checkpoint.objects()) {
      result.push_back(name);
      EXPECT_EQ(global, "numpy.ndarray");
    }
    return result;
  };
  EXPECT_EQ(checkpoint.format(), "pytorch legacy");
  EXPECT_EQ(names(), (Names{"net.x.0._orig_mod.y", "own", "z"}));
  const testing::Warnings warnings;
  checkpoint.strip_model_prefix();
  EXPECT_EQ(names(), Names{"x.0.y"});
  EXPECT_TRUE(checkpoint.has("x.1.w"));
  EXPECT_EQ(warnings.messages.size(), 1u);
}

}  // namespace
}  // namespace vitrail::weights
