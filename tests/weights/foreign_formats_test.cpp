// SPDX-License-Identifier: Apache-2.0
#include "vitrail/weights/foreign_formats_internal.h"

#include <gtest/gtest.h>

#include <fstream>

#include "tests/support/paths.h"
#include "vitrail/base/error.h"
#include "vitrail/base/read_file.h"
#include "vitrail/weights/checkpoint.h"
#include "vitrail/weights/file_lookup_internal.h"
#include "vitrail/weights/hub_layout.h"

namespace vitrail::weights {
namespace {

namespace fs = std::filesystem;

std::string error_of(const std::function<void()>& action) {
  try {
    action();
  } catch (const Error& error) {
    return error.what();
  }
  return "no error";
}

std::string open_error(const std::string& bytes, const std::string& name) {
  const auto* begin = reinterpret_cast<const std::byte*>(bytes.data());
  return error_of([&] { Checkpoint::open(FileBytes::hold({begin, begin + bytes.size()}, name)); });
}

TEST(ForeignFormats, FilesOfOtherProgramsAreNamed) {
  const std::string zeros(300, '\0'), tar = std::string(257, 'a') + "ustar" + zeros;
  struct Case {
    std::string bytes, name, part;
  };
  const Case cases[] = {{"GGUF\x03" + zeros, "model.bin", "a GGUF or ggml file"},
                        {std::string("GGUF\x03\0\0\0{\0\0\0", 12) + zeros, "model.gguf", "a GGUF or ggml file"},
                        {"lmgg" + zeros, "ggml-model-f16.bin", "a GGUF or ggml file"},
                        {"\x89HDF\r\n\x1a\n" + zeros, "weights", "an HDF5 file"},
                        {std::string("\x1c\0\0\0TFL3", 8) + zeros, "model", "a TensorFlow Lite model"},
                        {"\x08\x08\x12\x07pytorch\x1a\x05" + zeros, "model", "an ONNX graph"},
                        {zeros, "MODEL.ONNX", "an ONNX graph"},
                        {"\x81\xa6params\xde" + zeros, "flax_model", "a msgpack file of Flax"},
                        {zeros, "flax_model.msgpack", "a msgpack file of Flax"},
                        {std::string("\xde\0\x20\xa6params", 10) + zeros, "of_32_keys", "a msgpack file of Flax"},
                        {std::string("\xde\0\x20\0params", 10) + zeros, "other", "an unknown format"},
                        {zeros + "\x57\xfb\x80\x8b\x24\x75\x47\xdb", "ckpt-1", "a TensorFlow checkpoint"},
                        {zeros, "vit.ckpt-7.data-00000-of-00001", "a TensorFlow checkpoint"},
                        {zeros, "saved_model.pb", "a TensorFlow checkpoint"},
                        {"\x1f\x8b\x08" + zeros, "model.pth", "a gzip file; unpack it first"},
                        {tar, "model", "a tar archive; unpack it first"},
                        {"\x93NUMPY" + zeros, "w.npy", "a single NumPy array"},
                        {"<!DOCTYPE html><html>", "model.pth", "an HTML or XML page"},
                        {"\n  <html lang=en>", "model.pth", "an HTML or XML page"},
                        {"{\"model_type\": \"vit\"}", "config.json", "a JSON text"},
                        {"\x89PNG\r\n\x1a\n" + zeros, "a.png", "a PNG image"},
                        {"version https://git-lfs.github.com/spec/v1\n", "model.safetensors", "a Git LFS pointer"},
                        {zeros, "model.pth", "an unknown format or a damaged file"}};
  for (const Case& c : cases) {
    const std::string error = open_error(c.bytes, c.name);
    EXPECT_NE(error.find("got " + c.part), std::string::npos) << c.name << ": " << error;
    EXPECT_EQ(error.rfind(c.name + ": expected", 0), 0u) << error;
  }
}

TEST(ForeignFormats, FoldersWithoutKnownWeightsSayWhatIsInThem) {
  const auto folder_with = [](const std::vector<std::string>& names) {
    const fs::path folder = testing::scratch_folder();
    for (const std::string& name : names) std::ofstream(folder / name) << "x";
    return folder;
  };
  const auto error = [](const fs::path& folder) { return error_of([&] { find_hub_files(folder); }); };
  EXPECT_NE(error(folder_with({"config.json"})).find("got none of them"), std::string::npos);
  EXPECT_NE(
      error(folder_with({"flax_model.msgpack", "config.json"})).find("flax_model.msgpack, a msgpack file of Flax"),
      std::string::npos);
  EXPECT_NE(error(folder_with({"tf_model.h5"})).find("tf_model.h5, an HDF5 file"), std::string::npos);
  const fs::path other = folder_with({"model.onnx", "checkpoint_best.pth"});
  EXPECT_NE(error(other).find("give the file itself: " + (other / "checkpoint_best.pth").string()), std::string::npos)
      << error(other);
}

TEST(FileLookup, TextIsReadAndOtherPathsAreErrors) {
  const fs::path folder = testing::scratch_folder();
  const std::string text = std::string("a\0b\r\n", 5) + std::string(100000, 'x');
  std::ofstream(folder / "text", std::ios::binary) << text;
  EXPECT_EQ(read_text_file(folder / "text"), text);
  fs::create_symlink("loop", folder / "loop");
  EXPECT_NE(error_of([&] { read_text_file(folder); }).find("got a folder"), std::string::npos);
  EXPECT_NE(error_of([&] { read_text_file(folder / "none"); }).find("cannot be opened: No such file"),
            std::string::npos);
  EXPECT_NE(error_of([&] { read_text_file(folder / "loop"); }).find("Too many levels"), std::string::npos);
  EXPECT_NE(error_of([&] { read_text_file("/dev/zero"); }).find("at most 64000000 bytes"), std::string::npos);
  EXPECT_EQ(look_up(folder / "none"), PathKind::missing);
  EXPECT_EQ(look_up(folder / "text" / "below"), PathKind::missing);
  EXPECT_EQ(look_up(folder), PathKind::folder);
  EXPECT_EQ(look_up(folder / "text"), PathKind::other);
  EXPECT_NE(error_of([&] { look_up(folder / std::string(300, 'x')); }).find("File name too long"), std::string::npos);
}

}  // namespace
}  // namespace vitrail::weights
