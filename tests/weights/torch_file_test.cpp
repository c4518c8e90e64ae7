// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <fstream>

#include "tests/support/errors.h"
#include "tests/support/messages.h"
#include "tests/support/paths.h"
#include "vitrail/base/error.h"
#include "vitrail/base/zip_writer_internal.h"
#include "vitrail/weights/checkpoint.h"

namespace vitrail::weights {
namespace {

Checkpoint open_fixture(const std::string& name) { return Checkpoint::open(testing::fixture("weights/" + name)); }

std::string fixture_error(const std::string& name) {
  try {
    open_fixture(name);
  } catch (const Error& error) {
    return error.what();
  }
  return "no error";
}

void expect_same(const Tensor& actual, const Tensor& expected, const std::string& name) {
  ASSERT_EQ(actual.dtype(), expected.dtype()) << name;
  ASSERT_EQ(actual.shape(), expected.shape()) << name;
  const Tensor a = actual.contiguous(), b = expected.contiguous();
  const size_t bytes = static_cast<size_t>(a.numel()) * size_of(a.dtype());
  EXPECT_TRUE(bytes == 0 || std::memcmp(a.raw(), b.raw(), bytes) == 0) << name;
}

void expect_same(const Checkpoint& actual, const Checkpoint& expected) {
  EXPECT_EQ(actual.tensors().size(), expected.tensors().size());
  for (const TensorInfo& info : expected.tensors())
    expect_same(actual.tensor(info.name), expected.tensor(info.name), info.name);
}

// The files contain every dtype, views, shared storages, parameters and tensors with attributes in {"model": …, …}.
TEST(TorchFile, EveryFormatHasTheTensorsOfTheSafetensorsFile) {
  const Checkpoint expected = open_fixture("expected.safetensors");
  for (const char* name : {"zip.pt", "zip_protocol4.pt", "legacy.pt"}) {
    const Checkpoint checkpoint = open_fixture(name);
    EXPECT_EQ(checkpoint.format(), std::string(name) == "legacy.pt" ? "pytorch legacy" : "pytorch zip");
    expect_same(checkpoint, expected);
  }
}

TEST(TorchFile, StoredTensorsAreViewsOfTheArchive) {
  const Checkpoint checkpoint = open_fixture("zip.pt");
  const auto* shared = checkpoint.tensor("shared").raw();
  EXPECT_EQ(checkpoint.tensor("shared_row").raw(), shared + 2 * 8 * sizeof(float));
  EXPECT_EQ(checkpoint.tensor("transposed").raw(), shared);
  EXPECT_EQ(checkpoint.tensor("transposed").strides(), (Shape{1, 8}));
}

TEST(TorchFile, FunctionsThatRunCodeAreRefusedByName) {
  const std::pair<const char*, const char*> hostile[] = {{"hostile_system.pt", "posix.system, which is refused"},
                                                         {"hostile_eval.pt", "__builtin__.eval, which is refused"},
                                                         {"hostile_getattr.pt", "__builtin__.getattr, which is"},
                                                         {"hostile_load.pt", "torch.storage._load_from_bytes, which"},
                                                         {"hostile_import.pt", "__builtin__.__import__, which is"},
                                                         {"hostile_legacy.pt", "posix.system, which is refused"},
                                                         {"hostile_plain.pkl", "posix.system, which is refused"}};
  for (const auto& [name, part] : hostile) {
    const std::string error = fixture_error(name);
    EXPECT_NE(error.find(part), std::string::npos) << error;
    EXPECT_NE(error.find(name), std::string::npos) << error;
  }
}

TEST(TorchFile, PickledTensorsSayHowToSaveThem) {
  const std::string error = fixture_error("hostile_load.pt");
  EXPECT_NE(error.find("pickle.dump writes it for each tensor"), std::string::npos) << error;
  EXPECT_NE(error.find("torch.save(state_dict, \"weights.pth\")"), std::string::npos) << error;
  EXPECT_EQ(error.find("do not load this file"), std::string::npos) << error;
}

TEST(TorchFile, AWholeModuleSaysWhatToSaveInstead) {
  const std::string error = fixture_error("module.pt");
  EXPECT_NE(error.find("a whole module, an object of torch.nn.modules.linear.Linear"), std::string::npos) << error;
  EXPECT_NE(error.find("torch.save(model.state_dict(), \"weights.pth\")"), std::string::npos) << error;
}

// OpenAI's CLIP has this format.  The code in the archive is not read.
TEST(TorchFile, ATorchScriptArchiveGivesTheTensorsOfItsModules) {
  const Checkpoint checkpoint = open_fixture("script.pt");
  std::vector<std::string> names = checkpoint.names();
  std::sort(names.begin(), names.end());
  EXPECT_EQ(names, (std::vector<std::string>{"blocks.0.bias", "blocks.0.weight", "blocks.1.bias", "blocks.1.weight",
                                             "offset", "scale"}));
  EXPECT_EQ(checkpoint.tensor("offset").data<float>()[1], 5);
  EXPECT_EQ(checkpoint.tensor("scale").data<float>()[1], 1);
  EXPECT_EQ(checkpoint.tensor("blocks.1.weight").shape(), (Shape{2, 3}));
  EXPECT_EQ(checkpoint.tensor("blocks.1.weight").data<float>()[5], 35);
}

TEST(TorchFile, AFileWithoutADictOfTensorsIsAnError) {
  EXPECT_NE(fixture_error("list.pt").find("a dict of tensors"), std::string::npos);
}

TEST(TorchFile, AnUnsupportedTypeIsAnErrorOnlyWhenRead) {
  const Checkpoint checkpoint = open_fixture("unsupported_type.pt");
  EXPECT_EQ(checkpoint.tensor("bias").data<float>()[1], 1.0f);
  EXPECT_EQ(checkpoint.info("weight").unsupported_dtype, "uint16");
  EXPECT_THROW(checkpoint.tensor("weight"), Error);
}

TEST(TorchFile, APickleOfTooManyObjectsIsAnError) {
  EXPECT_NE(fixture_error("bomb.pt").find("objects"), std::string::npos) << fixture_error("bomb.pt");
}

TEST(Npz, StoredAndDeflatedArraysAreRead) {
  const Checkpoint expected = open_fixture("expected_npz.safetensors");
  for (const char* name : {"stored.npz", "deflated.npz"}) {
    const Checkpoint checkpoint = open_fixture(name);
    EXPECT_EQ(checkpoint.format(), "npz");
    expect_same(checkpoint, expected);
    EXPECT_EQ(checkpoint.tensor("fortran").strides(), (Shape{1, 3, 12}));
  }
}

TEST(Npz, ArraysOfObjectsAndUnsupportedTypesAreErrorsWhenRead) {
  const Checkpoint checkpoint = open_fixture("objects.npz");
  EXPECT_EQ(checkpoint.tensor("weight").data<float>()[1], 1.0f);
  for (const auto& [name, part] : {std::pair("trap", "pickled objects, refused"), std::pair("big_endian", ">f4")}) {
    try {
      checkpoint.tensor(name);
      ADD_FAILURE() << name;
    } catch (const Error& error) {
      EXPECT_NE(std::string(error.what()).find(part), std::string::npos) << error.what();
    }
  }
}

std::vector<std::byte> fixture_bytes(const std::string& name) {
  const FileBytes file = FileBytes::map(testing::fixture("weights/" + name));
  return {file.data.begin(), file.data.end()};
}

void read_everything(std::vector<std::byte> bytes) {
  const Checkpoint checkpoint = Checkpoint::open(FileBytes::hold(std::move(bytes), "changed"));
  for (const TensorInfo& info : checkpoint.tensors()) checkpoint.tensor(info.name).contiguous();
}

TEST(Checkpoint, TruncatedFilesAreErrors) {
  for (const char* name : {"zip.pt", "legacy.pt", "stored.npz", "deflated.npz", "expected.safetensors"}) {
    const auto bytes = fixture_bytes(name);
    for (size_t length = 0; length < bytes.size(); length += length < 512 || bytes.size() - length < 256 ? 1 : 17) {
      EXPECT_THROW(read_everything({bytes.begin(), bytes.begin() + length}), Error) << name << " cut to " << length;
    }
  }
}

TEST(Checkpoint, AChangedByteGivesAnErrorOrTensors) {
  for (const char* name : {"zip.pt", "legacy.pt", "stored.npz", "deflated.npz", "expected.safetensors"}) {
    const auto bytes = fixture_bytes(name);
    for (size_t at = 0; at < bytes.size(); at += 3) {
      auto changed = bytes;
      changed[at] ^= std::byte{static_cast<unsigned char>(1u << at % 8)};
      try {
        read_everything(std::move(changed));
      } catch (const Error&) {
      }
    }
  }
}

// The file with a bit changed in the values of a tensor that is a view of it.
std::vector<std::byte> with_changed_value(const std::string& name) {
  std::vector<std::byte> bytes = fixture_bytes(name);
  const FileBytes file = FileBytes::hold(bytes, name);
  const Checkpoint checkpoint = Checkpoint::open(file);
  for (const TensorInfo& info : checkpoint.tensors()) {
    const Tensor tensor = checkpoint.tensor(info.name);
    const auto at = static_cast<const std::byte*>(tensor.raw()) - file.data.data();
    if (tensor.numel() == 0 || at < 0 || at >= std::ssize(bytes)) continue;
    bytes[static_cast<size_t>(at)] ^= std::byte{0x40};
    return bytes;
  }
  ADD_FAILURE() << name << " has no view";
  return bytes;
}

TEST(Checkpoint, AChangedValueOfAnArchiveIsAnError) {
  for (const char* name : {"zip.pt", "stored.npz"}) {
    try {
      read_everything(with_changed_value(name));
      ADD_FAILURE() << name;
    } catch (const Error& error) {
      EXPECT_NE(std::string(error.what()).find("the entry is damaged"), std::string::npos) << error.what();
    }
  }
}

TEST(TorchFile, AnArchiveOfAnotherByteOrderIsAnError) {
  std::vector<std::byte> bytes = fixture_bytes("zip.pt");
  const std::string_view text(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  const size_t at = text.find("little", text.find("byteorder"));
  ASSERT_NE(at, text.npos);
  std::memcpy(bytes.data() + at, "biggie", 6);
  try {
    read_everything(bytes);
    ADD_FAILURE() << "it was read";
  } catch (const Error& error) {
    EXPECT_NE(std::string(error.what()).find("expected little-endian data, got \"biggie\""), std::string::npos)
        << error.what();
  }
}

TEST(NpzFile, HasArraysAlone) {
  const auto path = testing::scratch_folder() / "a.npz";
  std::string array(
      "\x93NUMPY\x01\0\x3a\0"
      "{'descr': '|u1', 'fortran_order': False, 'shape': (1,), }\n",
      68);
  array += '\x07';
  ZipWriter writer(path);
  writer.begin("x.npy");
  writer.write(array.data(), array.size());
  writer.end();
  writer.begin("notes.txt");
  writer.write("text", 4);
  writer.end();
  writer.commit();
  try {
    Checkpoint::open(path);
    ADD_FAILURE() << "a text was read";
  } catch (const Error& error) {
    EXPECT_NE(std::string(error.what()).find("notes.txt: expected only .npy arrays in an .npz"), std::string::npos)
        << error.what();
  }
}

// torch.save writes such archives after torch.serialization.set_crc32_options(False).
TEST(TorchFile, AnArchiveWithoutChecksumsIsRead) {
  std::vector<std::byte> bytes = fixture_bytes("zip.pt");
  const std::string_view text(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  for (size_t at = text.find("PK\1\2"); at != text.npos; at = text.find("PK\1\2", at + 1))
    std::fill_n(bytes.begin() + static_cast<std::ptrdiff_t>(at) + 16, 4, std::byte{0});
  EXPECT_NO_THROW(read_everything(bytes));
}

// An .npz of these entries.
std::filesystem::path archive_of(const std::vector<std::pair<std::string, std::string>>& entries) {
  const auto path = testing::scratch_folder() / "a.npz";
  ZipWriter writer(path);
  for (const auto& [name, content] : entries) {
    writer.begin(name);
    writer.write(content.data(), content.size());
    writer.end();
  }
  writer.commit();
  return path;
}

// An array of bytes.
std::string npy_of(const std::string& shape, const std::string& elements, const std::string& type = "|u1") {
  const std::string header = "{'descr': '" + type + "', 'fortran_order': False, 'shape': " + shape + ", }\n";
  return std::string("\x93NUMPY\x01\0", 8) + static_cast<char>(header.size()) + '\0' + header + elements;
}

TEST(NpzFile, NamesAreThoseOfTheEntriesWithoutTheirEnding) {
  const auto path = archive_of({{"b/x.npy", npy_of("(2,)", "\x05\x06")},
                                {"b/", ""},
                                {"a.npy.npy", npy_of("(1, 3)", "\x07\x08\x09")},
                                {".npy", npy_of("()", "\x0a")},
                                {"big.npy", npy_of("(1,)", std::string(2, '\0'), ">i2")}});
  const Checkpoint checkpoint = Checkpoint::open(path);
  EXPECT_EQ(checkpoint.format(), "npz");
  EXPECT_EQ(checkpoint.names(), (std::vector<std::string>{"b/x", "a.npy", "", "big"}));
  EXPECT_EQ(checkpoint.tensor("b/x").data<uint8_t>()[1], 6);
  EXPECT_EQ(checkpoint.tensor("a.npy").shape(), (Shape{1, 3}));
  EXPECT_EQ(checkpoint.tensor("a.npy").data<uint8_t>()[2], 9);
  EXPECT_EQ(checkpoint.tensor("").item<uint8_t>(), 10);
  EXPECT_EQ(checkpoint.info("big").unsupported_dtype, ">i2");
  EXPECT_EQ(checkpoint.info("a.npy").dtype, DType::u8);
  EXPECT_ERROR(testing::error_of([&] { checkpoint.tensor("big"); }), path.string() + ": big.npy", ">i2");
}

TEST(NpzFile, TheErrorNamesTheEntry) {
  const auto error = [](const std::vector<std::pair<std::string, std::string>>& entries) {
    const auto path = archive_of(entries);
    const std::string text = testing::error_of([&] { Checkpoint::open(path).tensor("x"); });
    return text.substr(path.string().size());
  };
  EXPECT_ERROR(error({{"x.npy", npy_of("(3,)", "12")}}), ": x.npy", "2 bytes");
  EXPECT_ERROR(error({{"x.npy", "no array"}}), ": x.npy", "another file of 8 bytes");
  EXPECT_ERROR(error({{"x.npy", npy_of("()", "1")}, {"y.npz", ""}}), ": y.npz", "another file");
}

}  // namespace
}  // namespace vitrail::weights
