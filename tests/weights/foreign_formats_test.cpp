// SPDX-License-Identifier: Apache-2.0
#include "vitrail/weights/foreign_formats_internal.h"

#include <gtest/gtest.h>

#include <fstream>

#include "tests/support/messages.h"
#include "tests/support/paths.h"
#include "vitrail/base/file_lookup_internal.h"
#include "vitrail/base/read_file.h"
#include "vitrail/weights/checkpoint.h"
#include "vitrail/weights/hub_layout.h"

namespace vitrail::weights {
namespace {

namespace fs = std::filesystem;
using testing::error_of;

std::string foreign_error(const std::string& bytes, const std::string& name) {
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
                        {zeros, "vit.ckpt-7.data-00000-of-00001", "a TensorFlow checkpoint"},
                        {zeros, "saved_model.pb", "a TensorFlow checkpoint"},
                        {"\x1f\x8b\x08" + zeros, "model.pth", "a compressed file; unpack it first"},
                        {tar, "model", "a tar archive; unpack it first"},
                        {"IxFI" + zeros, "photos.index", "an index of vectors, not a model"},
                        {"IxSQ" + zeros, "photos.index", "an index of vectors, not a model"},
                        {"\x93NUMPY" + zeros, "w.npy", "a single NumPy array"},
                        {"<!DOCTYPE html><html>", "model.pth", "an HTML or XML page"},
                        {"\n  <html lang=en>", "model.pth", "an HTML or XML page"},
                        {"{\"model_type\": \"vit\"}", "config.json", "a JSON text"},
                        {"\x89PNG\r\n\x1a\n" + zeros, "a.png", "an image"},
                        {"version https://git-lfs.github.com/spec/v1\n", "model.safetensors", "a Git LFS pointer"},
                        {"PK\x03\x04" + zeros, "dcp/__0_0.distcp", "a part of a checkpoint of torch.distributed; join"},
                        {"\x80\x02" + zeros, "dcp/__1_0.distcp", "a part of a checkpoint of torch.distributed; join"},
                        {zeros, "model.pth", "an unknown format or a damaged file"}};
  for (const Case& c : cases) {
    const std::string error = foreign_error(c.bytes, c.name);
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
  const auto error = [](const fs::path& folder) { return error_of([&] { find_hub_weights(folder); }); };
  EXPECT_NE(error(folder_with({"config.json"})).find("got none of them"), std::string::npos);
  EXPECT_NE(
      error(folder_with({"flax_model.msgpack", "config.json"})).find("flax_model.msgpack, a msgpack file of Flax"),
      std::string::npos);
  EXPECT_NE(error(folder_with({"tf_model.h5"})).find("tf_model.h5, an HDF5 file"), std::string::npos);
  EXPECT_NE(error(folder_with({".metadata", "__0_0.distcp"})).find("dcp_to_torch_save(folder, \"weights.pth\")"),
            std::string::npos);
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

const std::string kOfOriginal = "; use the PyTorch or safetensors checkpoint that it was made from",
                  kOfArrays = "; save the arrays by name as an .npz file (numpy.savez) or as safetensors",
                  kOfPacked = "; unpack it first";

TEST(ForeignFile, IsKnownByItsFirstBytes) {
  const std::string gguf = "a GGUF or ggml file" + kOfOriginal;
  const std::pair<std::string, std::string> cases[] = {
      {"GGUF", gguf},
      {"lmgg", gguf},
      {"fmgg", gguf},
      {"tjgg", gguf},
      {"\x89HDF\r\n", "an HDF5 file of Keras or TensorFlow" + kOfArrays},
      {"abcdTFL3", "a TensorFlow Lite model" + kOfOriginal},
      {"\x93NUMPY", "a single NumPy array" + kOfArrays},
      {"\x1f\x8b", "a compressed file" + kOfPacked},
      {"\x28\xb5\x2f\xfd", "a compressed file" + kOfPacked},
      {"\xfd"
       "7zXZ",
       "a compressed file" + kOfPacked},
      {"BZh", "a compressed file" + kOfPacked},
      {"7z\xbc\xaf", "a compressed file" + kOfPacked},
      {std::string(257, 'x') + "ustar", "a tar archive" + kOfPacked},
      {"\x89PNG", "an image, not a model"},
      {"\xff\xd8\xff", "an image, not a model"},
      {"<!DOCTYPE html>", "an HTML or XML page, not the weights: the download failed or is of a web page"},
      {" \t\r\n<HTML>", "an HTML or XML page, not the weights: the download failed or is of a web page"},
      {"\xef\xbb\xbf<?xml", "an HTML or XML page, not the weights: the download failed or is of a web page"},
      {"{", "a JSON text; give the weights, or the folder with config.json and the weights"},
      {"\n [1]", "a JSON text; give the weights, or the folder with config.json and the weights"}};
  for (const auto& [bytes, want] : cases) {
    EXPECT_EQ(foreign_file(bytes, "file"), want) << ::testing::PrintToString(bytes);
    if (want.starts_with("an HTML") || want.starts_with("a JSON")) continue;
    EXPECT_EQ(foreign_file(bytes.substr(0, bytes.size() - 1), "file"), "") << ::testing::PrintToString(bytes);
  }
  for (const char* bytes : {"", "x", " \n", "xGGUF", "<body>", "TFL3", "plain text", "\x89PN"})
    EXPECT_EQ(foreign_file(bytes, "file"), "") << ::testing::PrintToString(bytes);
  EXPECT_EQ(foreign_file(std::string(256, ' ') + "{", "file"), "") << "behind the bytes that are looked at";
  EXPECT_NE(foreign_file(std::string(255, ' ') + "{", "file"), "");
}

TEST(ForeignFile, IsKnownByTheEndOfItsName) {
  const std::string table = "a TensorFlow checkpoint or graph" + kOfArrays,
                    compiled = "a compiled TensorRT, OpenVINO or Core ML model" + kOfOriginal,
                    hdf5 = "an HDF5 file of Keras or TensorFlow" + kOfArrays,
                    program =
                        "a program of torch.export; save its weights instead: torch.save(model.state_dict(), "
                        "\"weights.pth\")";
  const std::pair<const char*, std::string> cases[] = {{".gguf", "a GGUF or ggml file" + kOfOriginal},
                                                       {".ggml", "a GGUF or ggml file" + kOfOriginal},
                                                       {".onnx", "an ONNX graph" + kOfOriginal},
                                                       {".h5", hdf5},
                                                       {".hdf5", hdf5},
                                                       {".keras", hdf5},
                                                       {".msgpack", "a msgpack file of Flax" + kOfArrays},
                                                       {".tflite", "a TensorFlow Lite model" + kOfOriginal},
                                                       {".pb", table},
                                                       {".index", table},
                                                       {".meta", table},
                                                       {".data-00000-of-00001", table},
                                                       {".engine", compiled},
                                                       {".plan", compiled},
                                                       {".mlmodel", compiled},
                                                       {".mlpackage", compiled},
                                                       {".pt2", program}};
  for (const auto& [ending, want] : cases) {
    EXPECT_EQ(foreign_file("bytes", std::string("folder/Model") + ending), want);
    EXPECT_EQ(foreign_file("bytes", std::string("model") + ending + "x"), "");
    EXPECT_EQ(foreign_file("bytes", std::string("model") + (ending + 1)), "") << "without a dot";
  }
  EXPECT_EQ(foreign_file("bytes", "A.ONNX"), "an ONNX graph" + kOfOriginal);
  EXPECT_EQ(foreign_file("\x1f\x8b", "a.onnx"), "a compressed file" + kOfPacked) << "the bytes count before the name";
  EXPECT_EQ(foreign_file("{", "a.onnx"), "an ONNX graph" + kOfOriginal) << "the name counts before the text";
}

// A map of msgpack whose first key is a short text; ONNX's version and then its producer, domain or graph.
TEST(ForeignFile, IsKnownByItsStructure) {
  const std::string flax = "a msgpack file of Flax" + kOfArrays, onnx = "an ONNX graph" + kOfOriginal;
  const auto of = [](std::initializer_list<int> bytes) {
    std::string text;
    for (const int byte : bytes) text += static_cast<char>(byte);
    text.resize(std::max<size_t>(text.size(), 8), 'z');
    return foreign_file(text, "file");
  };
  for (const int first : {0x81, 0x88, 0x8f}) {
    for (const int second : {0xa1, 0xb0, 0xbf}) EXPECT_EQ(of({first, second}), flax);
    for (const int second : {0xa0, 0xc0, 0x61}) EXPECT_EQ(of({first, second}), "") << second;
  }
  for (const int first : {0x80, 0x90, 0x10}) EXPECT_EQ(of({first, 0xa5}), "") << first;
  for (const int fourth : {0xa1, 0xbf}) EXPECT_EQ(of({0xde, 0, 1, fourth}), flax);
  for (const int fourth : {0xa0, 0xc0}) EXPECT_EQ(of({0xde, 0, 1, fourth}), "");
  EXPECT_EQ(of({0xdf, 0, 1, 0xa1}), "");
  for (const int third : {0x12, 0x3a, 0x42}) {
    for (const int version : {1, 8, 0x20}) EXPECT_EQ(of({8, version, third}), onnx);
    EXPECT_EQ(of({8, 0x21, third}), "");
    EXPECT_EQ(of({9, 8, third}), "");
  }
  EXPECT_EQ(of({8, 8, 0x13}), "");
  EXPECT_EQ(foreign_file("\x81\xa1zzzzz", "file"), "") << "seven bytes";
}

TEST(FolderContent, NamesTheFirstFileOfWeightsElseTheFirstForeignOne) {
  const auto content = [](const std::vector<std::string>& names) {
    const fs::path folder = testing::scratch_folder();
    for (const std::string& name : names) std::ofstream(folder / name) << "x";
    const std::string text = folder_content(folder), path = folder.string() + "/";
    const size_t at = text.find(path);
    return at == text.npos ? text : text.substr(0, at) + text.substr(at + path.size());
  };
  EXPECT_EQ(content({}), "none of them");
  EXPECT_EQ(content({"readme.md", "pt", "x.ptx"}), "none of them");
  for (const char* ending : {".safetensors", ".pth", ".pt", ".bin", ".npz", ".ckpt", ".tar", ".PTH"}) {
    const std::string name = std::string("own") + ending;
    EXPECT_EQ(content({"b.onnx", name, "zz.bin"}), "other names; give the file itself: " + name);
  }
  EXPECT_EQ(content({"c.pth", "a.bin", "b.npz"}), "other names; give the file itself: a.bin");
  EXPECT_EQ(content({"c.onnx", "a.h5", "text"}), "a.h5, an HDF5 file of Keras or TensorFlow" + kOfArrays);
  const fs::path absent = testing::scratch_folder() / "absent";
  EXPECT_EQ(folder_content(absent), "a folder that cannot be read: No such file or directory");
}

}  // namespace
}  // namespace vitrail::weights
