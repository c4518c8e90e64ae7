// SPDX-License-Identifier: Apache-2.0
#include "vitrail/weights/hub_layout.h"

#include <gtest/gtest.h>

#include <fstream>

#include "tests/support/errors.h"
#include "tests/support/messages.h"
#include "tests/support/paths.h"
#include "vitrail/base/error.h"
#include "vitrail/base/read_file.h"
#include "vitrail/weights/checkpoint.h"
#include "vitrail/weights/safetensors.h"

namespace vitrail::weights {
namespace {

namespace fs = std::filesystem;

void write(const fs::path& path, const std::string& text) { std::ofstream(path, std::ios::binary) << text; }

std::string layout_error(const fs::path& folder) {
  try {
    find_hub_weights(folder);
  } catch (const Error& error) {
    return error.what();
  }
  return "no error";
}

TEST(HubLayout, RoundTrip) {
  const fs::path folder = testing::scratch_folder() / "new" / "model";
  write_hub_folder(folder, "{\"architecture\": \"vit\"}", {{"w", Tensor::full({2}, 3)}});
  const std::vector<fs::path> files = find_hub_weights(folder);
  ASSERT_EQ(files, std::vector{folder / "model.safetensors"});
  EXPECT_EQ(Checkpoint::open(files).tensor("w").data<float>()[1], 3.0f);
  EXPECT_EQ(Checkpoint::open(files).metadata().at("format"), "pt");
}

TEST(HubLayout, AFolderIsReplacedAsAWhole) {
  const fs::path folder = testing::scratch_folder() / "model";
  write_hub_folder(folder, "{\"a\": 1}", {{"w", Tensor::full({2}, 3)}}, "{\"size\": 4}");
  EXPECT_EQ(read_text_file(folder / "preprocessor_config.json"), "{\"size\": 4}");
  // A folder where the last file belongs, so that nothing is replaced.
  fs::remove(folder / "preprocessor_config.json");
  fs::create_directories(folder / "preprocessor_config.json");
  EXPECT_THROW(write_hub_folder(folder, "{\"a\": 2}", {{"w", Tensor::full({2}, 5)}}, "{\"size\": 6}"), Error);
  EXPECT_EQ(read_text_file(folder / "config.json"), "{\"a\": 1}");
  EXPECT_EQ(Checkpoint::open(find_hub_weights(folder)).tensor("w").data<float>()[0], 3.0f);
  int64_t files = 0;
  for (const auto& entry : fs::directory_iterator(folder)) files += entry.is_regular_file();
  EXPECT_EQ(files, 2);  // no temporary ones
}

TEST(HubLayout, AFailureLeavesNoNewFolder) {
  const fs::path parent = testing::scratch_folder(), folder = parent / "a" / "model";
  const std::vector<std::pair<std::string, Tensor>> twice{{"w", Tensor::full({2}, 3)}, {"w", Tensor::full({2}, 5)}};
  EXPECT_THROW(write_hub_folder(folder, "{}", twice), Error);
  EXPECT_FALSE(fs::exists(folder));
  fs::create_directories(folder);
  EXPECT_THROW(write_hub_folder(folder, "{}", twice), Error);
  EXPECT_TRUE(fs::exists(folder)) << "it was there before";
}

TEST(HubLayout, ShardsAreOneCheckpoint) {
  const fs::path folder = testing::scratch_folder();
  write_safetensors(folder / "a.safetensors", {{"x", Tensor::full({2}, 1)}});
  write_safetensors(folder / "b.safetensors", {{"y", Tensor::full({2}, 2)}, {"z", Tensor::full({1}, 3)}});
  write(folder / "model.safetensors.index.json",
        R"({"metadata": {}, "weight_map": {"x": "a.safetensors", "y": "b.safetensors", "z": "b.safetensors"}})");
  const Checkpoint checkpoint = Checkpoint::open(find_hub_weights(folder));
  EXPECT_EQ(checkpoint.tensors().size(), 3u);
  EXPECT_EQ(checkpoint.tensor("x").data<float>()[0], 1.0f);
  EXPECT_EQ(checkpoint.tensor("z").data<float>()[0], 3.0f);

  write_safetensors(folder / "b.safetensors", {{"x", Tensor::full({2}, 2)}});
  EXPECT_THROW(Checkpoint::open(find_hub_weights(folder)), Error) << "a name in two shards";
}

TEST(HubLayout, OneSafetensorsFileOfAnyNameIsTheModel) {
  const fs::path folder = testing::scratch_folder();
  write_safetensors(folder / "open_clip_model.safetensors", {{"x", Tensor::full({2}, 1)}});
  EXPECT_EQ(find_hub_weights(folder), std::vector{folder / "open_clip_model.safetensors"});
  fs::rename(folder / "open_clip_model.safetensors", folder / "vit.safetensors");
  EXPECT_EQ(find_hub_weights(folder), std::vector{folder / "vit.safetensors"});
  write_safetensors(folder / "other.safetensors", {{"x", Tensor::full({2}, 1)}});
  EXPECT_NE(layout_error(folder).find("give the file itself"), std::string::npos) << layout_error(folder);
}

TEST(HubLayout, OfSeveralWeightsTheFirstOfTheKnownNamesIsChosen) {
  using Names = std::vector<std::string>;
  const Names known{"model.safetensors",
                    "model.safetensors.index.json",
                    "pytorch_model.bin",
                    "pytorch_model.bin.index.json",
                    "model.pth",
                    "model.pt",
                    "model.npz",
                    "open_clip_model.safetensors",
                    "open_clip_pytorch_model.bin"};
  for (size_t i = 0; i < known.size(); ++i) {
    Names names(known.rbegin(), known.rend() - static_cast<std::ptrdiff_t>(i));
    names.emplace_back("other.safetensors");
    EXPECT_EQ(choose_weights(names), known[i]);
  }
  EXPECT_EQ(choose_weights({}), "");
  EXPECT_EQ(choose_weights({"a.safetensors"}), "a.safetensors");
  EXPECT_EQ(choose_weights({"a.safetensors", "b.bin"}), "a.safetensors");
  EXPECT_EQ(choose_weights({"a.safetensors", "b.safetensors"}), "");
  EXPECT_EQ(choose_weights({"a.bin", "weights.pth"}), "");
}

TEST(HubLayout, InvalidFoldersAndIndicesAreErrors) {
  const fs::path folder = testing::scratch_folder();
  EXPECT_NE(layout_error(folder / "absent").find("nothing at this path"), std::string::npos);
  EXPECT_NE(layout_error(folder).find("none of them"), std::string::npos);
  const fs::path index = folder / "model.safetensors.index.json";
  const std::pair<const char*, const char*> invalid[] = {
      {"{", "invalid JSON"},
      {"{}", "weight_map"},
      {R"({"weight_map": {}})", "at least one shard"},
      {R"({"weight_map": [[[[[[[[[1]]]]]]]]]})", "nested deeper"},
      {R"({"weight_map": {"x": 1}})", "number"},
      {R"({"weight_map": {"x": "../a.safetensors"}})", "../a.safetensors"},
      {R"({"weight_map": {"x": "/etc/passwd"}})", "/etc/passwd"},
      {R"({"weight_map": {"x": ".."}})", "\"..\""},
      {R"({"weight_map": {"x": "gone.safetensors"}})", "gone.safetensors"}};
  for (const auto& [text, part] : invalid) {
    write(index, text);
    EXPECT_NE(layout_error(folder).find(part), std::string::npos) << layout_error(folder);
  }
  fs::remove(index);
  fs::create_symlink("/dev/zero", index);
  EXPECT_NE(layout_error(folder).find("expected a regular file"), std::string::npos) << layout_error(folder);
}

TEST(HubLayout, EachKindOfWeightsIsFoundInAFolder) {
  for (const char* name : {"model.safetensors", "pytorch_model.bin", "model.pth", "model.pt", "model.npz",
                           "open_clip_model.safetensors", "open_clip_pytorch_model.bin", "own.safetensors"}) {
    const fs::path folder = testing::scratch_folder();
    write(folder / name, "x");
    write(folder / "notes.txt", "x");
    const std::vector<fs::path> files = find_hub_weights(folder);
    EXPECT_EQ(files, std::vector{folder / name});
  }
  for (const char* name : {"model.safetensors.index.json", "pytorch_model.bin.index.json"}) {
    const fs::path folder = testing::scratch_folder();
    write(folder / name, R"({"weight_map": {"b": "two.bin", "a": "one.bin", "c": "two.bin"}})");
    write(folder / "one.bin", "x");
    write(folder / "two.bin", "x");
    write(folder / "preprocessor_config.json", "{}");
    const std::vector<fs::path> files = find_hub_weights(folder);
    EXPECT_EQ(files, (std::vector{folder / "one.bin", folder / "two.bin"})) << "each shard once";
    EXPECT_EQ(shards_of(folder / name), files);
    EXPECT_EQ(shard_names(folder / name), (std::vector<std::string>{"one.bin", "two.bin"}));
  }
}

TEST(HubLayout, TheErrorSaysWhatIsWrong) {
  const fs::path folder = testing::scratch_folder(), index = folder / "model.safetensors.index.json";
  EXPECT_ERROR(layout_error(folder / "absent"), (folder / "absent").string(), "nothing at this path");
  EXPECT_ERROR(layout_error(folder), folder.string(), "none of them");
  write(index, "{}");
  EXPECT_ERROR(layout_error(index), index.string(), "a file");
  const std::string names = "file names in \"weight_map\", got ", map = "a JSON object with \"weight_map\", got ";
  const std::pair<std::string, std::string> cases[] = {
      {"{", map + "invalid JSON"},
      {"", map + "invalid JSON"},
      {"[]", map + "another value"},
      {"{}", map + "another value"},
      {R"({"weight_map": []})", map + "another value"},
      {R"({"weight_map": {}})", "at least one shard, got none"},
      {R"({"weight_map": {"x": 1}})", names + "number"},
      {R"({"weight_map": {"x": null}})", names + "null"},
      {R"({"weight_map": {"x": ""}})", names + "\"\""},
      {R"({"weight_map": {"x": "."}})", names + "\".\""},
      {R"({"weight_map": {"x": ".."}})", names + "\"..\""},
      {R"({"weight_map": {"x": "a/b"}})", names + "\"a/b\""},
      {R"({"weight_map": {"x": "./b"}})", names + "\"./b\""},
      {R"({"weight_map": {"x": "b/"}})", names + "\"b/\""},
      {R"({"weight_map": {"x": "/b"}})", names + "\"/b\""},
      {R"({"weight_map": {"x": ")" + std::string(90, 'n') + "/\"}}", names + "\"" + std::string(80, 'n') + "\""},
      {R"({"weight_map": {"x": "a\u0000b"}})", names + "\"a"},
      {R"({"a": [[[[[[[1]]]]]]], "weight_map": {}})", "at least one shard, got none"},
      {R"({"a": [[[[[[[[1]]]]]]]], "weight_map": {}})", "an index of shards, got JSON that is nested deeper"},
      {R"({"weight_map": {"x": "gone"}})", "the shard gone in the same folder, got none"}};
  for (const auto& [text, want] : cases) {
    write(index, text);
    EXPECT_EQ(layout_error(folder).substr(0, index.string().size() + 11 + want.size()),
              index.string() + ": expected " + want);
  }
}

// It would be read with the new weights.
TEST(HubLayout, AnotherModelsProcessorIsRefused) {
  const std::string file = "preprocessor_config.json", preferred = "processor_config.json";
  const fs::path folder = testing::scratch_folder();
  EXPECT_NO_THROW(check_no_other_processor(folder, {}));
  EXPECT_NO_THROW(check_no_other_processor(folder / "new", {file}));
  write(folder / file, "{}");
  const std::string expected =
      ": expected no image processor of another model in the output folder, got one that would be used with the new "
      "weights: remove the file, or give another folder";
  EXPECT_EQ(testing::error_of([&] { check_no_other_processor(folder, {}); }), (folder / file).string() + expected);
  EXPECT_NO_THROW(check_no_other_processor(folder, {file}));
  write(folder / preferred, "{}");
  for (const std::vector<std::string>& written : {std::vector<std::string>{}, {file}}) {
    EXPECT_EQ(testing::error_of([&] { check_no_other_processor(folder, written); }),
              (folder / preferred).string() + expected);
  }
  EXPECT_NO_THROW(check_no_other_processor(folder, {file, preferred}));
}

TEST(HubLayout, AllFilesOfAModelAreWritten) {
  const fs::path folder = testing::scratch_folder() / "a" / "b";
  write_hub_folder(folder, "the config", {{"w", Tensor::full({3}, 2)}}, "the preprocessor");
  EXPECT_EQ(read_text_file(folder / "config.json"), "the config");
  EXPECT_EQ(read_text_file(folder / "preprocessor_config.json"), "the preprocessor");
  const std::vector<fs::path> files = find_hub_weights(folder);
  EXPECT_EQ(Checkpoint::open(files).tensor("w").data<float>()[2], 2);
  EXPECT_EQ(Checkpoint::open(files).metadata(), (std::map<std::string, std::string>{{"format", "pt"}}));
  write(folder / "file", "x");
  EXPECT_EQ(testing::error_of([&] { write_hub_folder(folder / "file" / "x", "", {}); }),
            (folder / "file/x").string() + ": cannot be created: Not a directory");
  const std::string path = (folder / "model.safetensors").string();
  EXPECT_ERROR(testing::error_of([&] {
                 write_hub_folder(folder, "other", {{"w", Tensor::zeros({1})}, {"w", Tensor::zeros({1})}});
               }),
               path, "\"w\" twice");
  EXPECT_EQ(read_text_file(folder / "config.json"), "the config");
}

}  // namespace
}  // namespace vitrail::weights
