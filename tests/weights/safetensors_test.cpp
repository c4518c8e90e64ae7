// SPDX-License-Identifier: Apache-2.0
#include "vitrail/weights/safetensors.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <fstream>

#include "tests/support/paths.h"
#include "vitrail/base/error.h"
#include "vitrail/weights/checkpoint.h"
#include "vitrail/weights/float8_internal.h"

namespace vitrail::weights {
namespace {

FileBytes file_of(const std::string& header, size_t data_bytes, uint64_t claimed_length) {
  std::string text;
  for (int i = 0; i < 8; ++i) text += static_cast<char>(claimed_length >> (8 * i));
  text += header + std::string(data_bytes, '\0');
  const auto* bytes = reinterpret_cast<const std::byte*>(text.data());
  return FileBytes::hold({bytes, bytes + text.size()}, "bad.safetensors");
}

FileBytes file_of(const std::string& header, size_t data_bytes) { return file_of(header, data_bytes, header.size()); }

std::string error_of(const FileBytes& bytes) {
  try {
    open_safetensors(bytes);
  } catch (const Error& error) {
    return error.what();
  }
  return "no error";
}

std::string entry(const std::string& dtype, const std::string& shape, const std::string& offsets) {
  return "{\"dtype\":\"" + dtype + "\",\"shape\":" + shape + ",\"data_offsets\":" + offsets + "}";
}

TEST(Safetensors, RoundTripIsBitForBit) {
  const auto path = testing::scratch_folder() / "a.safetensors";
  const Tensor f32 = Tensor::randn({3, 5}, 1), f64 = Tensor::randn({2}, 2, DType::f64);
  const Tensor bf16 = Tensor::randn({7}, 3, DType::bf16), flags = Tensor::from<bool>({3}, {true, false, true});
  const Tensor i8 = Tensor::from<int8_t>({2, 1}, {-3, 4}), empty = Tensor::zeros({0, 4});
  write_safetensors(
      path, {{"f32", f32.transpose(0, 1)}, {"f64", f64}, {"bf16", bf16}, {"flags", flags}, {"i8", i8}, {"none", empty}},
      {{"format", "pt"}});
  const Checkpoint checkpoint = Checkpoint::open(path);
  EXPECT_EQ(checkpoint.format(), "safetensors");
  EXPECT_EQ(checkpoint.metadata().at("format"), "pt");
  EXPECT_EQ(checkpoint.tensor("f32").shape(), (Shape{5, 3}));
  EXPECT_EQ(checkpoint.tensor("f32").data<float>()[1], f32.data<float>()[5]);
  EXPECT_EQ(checkpoint.tensor("f64").data<double>()[1], f64.data<double>()[1]);
  EXPECT_EQ(checkpoint.tensor("bf16").data<BFloat16>()[6].bits, bf16.data<BFloat16>()[6].bits);
  EXPECT_TRUE(checkpoint.tensor("flags").data<bool>()[2]);
  EXPECT_EQ(checkpoint.tensor("i8").data<int8_t>()[0], -3);
  EXPECT_EQ(checkpoint.tensor("none").shape(), (Shape{0, 4}));
}

TEST(Safetensors, TensorsAreViewsOfTheMappedFileAndTheirPagesCanBeReleased) {
  const auto path = testing::scratch_folder() / "a.safetensors";
  const Tensor weight = Tensor::randn({64, 1024}, 1);
  write_safetensors(path, {{"weight", weight}});
  const Checkpoint checkpoint = Checkpoint::open(path);
  const Tensor first = checkpoint.tensor("weight"), second = checkpoint.tensor("weight");
  EXPECT_EQ(first.raw(), second.raw());
  first.storage()->release();
  EXPECT_TRUE(first.is_meta());
  EXPECT_EQ(second.data<float>()[65535], weight.data<float>()[65535]);
}

// A file of the reference implementation, read and rewritten.
TEST(Safetensors, WrittenFilesEqualTheReferenceByteForByte) {
  for (const char* name : {"weights/expected.safetensors", "weights/expected_npz.safetensors"}) {
    const Checkpoint reference = Checkpoint::open(testing::fixture(name));
    std::vector<std::pair<std::string, Tensor>> tensors;
    for (const TensorInfo& info : reference.tensors()) tensors.emplace_back(info.name, reference.tensor(info.name));
    const auto path = testing::scratch_folder() / "again.safetensors";
    write_safetensors(path, tensors, reference.metadata());
    EXPECT_TRUE(std::ranges::equal(FileBytes::map(testing::fixture(name)).data, FileBytes::map(path).data)) << name;
  }
}

TEST(Safetensors, DuplicateOrReservedNamesCannotBeWritten) {
  const auto path = testing::scratch_folder() / "a.safetensors";
  const Tensor t = Tensor::zeros({1});
  EXPECT_THROW(write_safetensors(path, {{"a", t}, {"a", t}}), Error);
  EXPECT_THROW(write_safetensors(path, {{"__metadata__", t}}), Error);
  EXPECT_FALSE(std::filesystem::exists(path));
}

TEST(Safetensors, InvalidHeadersAreErrorsThatNameTheFile) {
  const auto has = [](const std::string& text, const std::string& part) {
    EXPECT_NE(text.find(part), std::string::npos) << text;
    EXPECT_EQ(text.rfind("bad.safetensors: ", 0), 0u) << text;
  };
  has(error_of(file_of("{}", 0, 3)), "truncated");
  has(error_of(file_of("{}", 0, uint64_t{1} << 63)), "at most 100000000 bytes");
  has(error_of(file_of("{", 0)), "JSON");
  has(error_of(file_of("[1]", 0)), "object");
  has(error_of(file_of("{\"a\":{\"b\":[[[[0]]]]}}", 0)), "nested deeper");
  has(error_of(file_of("{\"a\":\"\xff\"}", 0)), "JSON");
  has(error_of(file_of("{\"a\":1}", 0)), "dtype, shape and data_offsets");
  has(error_of(file_of("{\"__metadata__\":{\"a\":1}}", 0)), "a string");
  has(error_of(file_of("{\"a\":" + entry("F33", "[1]", "[0,4]") + "}", 4)), "F33");
  has(error_of(file_of("{\"a\":" + entry("F32", "[-1]", "[0,4]") + "}", 4)), "-1");
  has(error_of(file_of("{\"a\":" + entry("F32", "[1.5]", "[0,4]") + "}", 4)), "1.5");
  has(error_of(file_of("{\"a\":" + entry("F32", "[1,1,1,1,1,1,1,1,1]", "[0,4]") + "}", 4)), "at most 8");
  has(error_of(file_of("{\"a\":" + entry("F32", "[4294967296,4294967296]", "[0,4]") + "}", 4)), "2^63");
  has(error_of(file_of("{\"a\":" + entry("F32", "[2]", "[0,4]") + "}", 4)), "8 bytes for F32 [2]");
  has(error_of(file_of("{\"a\":" + entry("F32", "[1]", "[4,0]") + "}", 4)), "data_offsets 4 to 0");
  has(error_of(file_of("{\"a\":" + entry("F32", "[2]", "[0,8]") + "}", 4)), "truncated");
  has(error_of(file_of("{\"a\":" + entry("F32", "[1]", "[0,4]") + "}", 8)), "8 bytes");
  has(error_of(file_of("{\"a\":" + entry("F32", "[1]", "[0,4]") + ",\"b\":" + entry("F32", "[1]", "[0,4]") + "}", 4)),
      "overlap");
  has(error_of(file_of("{\"a\":" + entry("F32", "[1]", "[0,4]") + ",\"b\":" + entry("F32", "[1]", "[8,12]") + "}", 12)),
      "gap");
  has(error_of(file_of("{\"a\":" + entry("F32", "[1]", "[0,4]") + ",\"a\":" + entry("F32", "[1]", "[4,8]") + "}", 8)),
      "twice");
}

TEST(Safetensors, AnUnsupportedTypeIsAnErrorOnlyWhenRead) {
  const std::string header = "{\"a\":" + entry("U16", "[2]", "[0,4]") + ",\"b\":" + entry("U8", "[4]", "[4,8]") + "}";
  const Checkpoint checkpoint = Checkpoint::open(file_of(header, 8));
  EXPECT_EQ(checkpoint.tensor("b").numel(), 4);
  try {
    checkpoint.tensor("a");
    FAIL() << "no error";
  } catch (const Error& error) {
    EXPECT_NE(std::string(error.what()).find("U16"), std::string::npos) << error.what();
  }
}

// torch.tensor(BYTES, dtype=torch.uint8).view(torch.float8_e4m3fn).float()
TEST(Float8, ValuesAreThoseOfTorch) {
  const uint8_t bytes[] = {0x01, 0x07, 0x38, 0x7e, 0x80, 0xb9, 0x7b};
  const float e4m3fn[] = {0.001953125F, 0.013671875F, 1.0F, 448.0F, -0.0F, -1.125F, 352.0F};
  const float e5m2[] = {1.52587890625e-05F, 0.0001068115234375F, 0.5F, NAN, -0.0F, -0.625F, 57344.0F};
  for (size_t i = 0; i < 7; ++i) {
    EXPECT_EQ(widen(bytes[i], Float8::e4m3fn), e4m3fn[i]);
    EXPECT_TRUE(widen(bytes[i], Float8::e5m2) == e5m2[i] || std::isnan(e5m2[i])) << i;
  }
  EXPECT_TRUE(std::isnan(widen(0xff, Float8::e4m3fn)));
  EXPECT_EQ(widen(0xfc, Float8::e5m2), -INFINITY);
}

TEST(Safetensors, Float8IsWidened) {
  const std::string header =
      "{\"a\":" + entry("F8_E4M3", "[2]", "[0,2]") + ",\"b\":" + entry("F8_E5M2", "[2]", "[2,4]") + "}";
  const Checkpoint checkpoint = Checkpoint::open(file_of(header, 4));
  for (const char* name : {"a", "b"}) {
    EXPECT_EQ(checkpoint.info(name).dtype, DType::f32);
    EXPECT_EQ(checkpoint.tensor(name).dtype(), DType::f32);
    EXPECT_EQ(checkpoint.tensor(name).shape(), (Shape{2}));
  }
}

TEST(Safetensors, AMisalignedTensorIsCopied) {
  const std::string header = "{\"a\":" + entry("F32", "[1]", "[0,4]") + "} ";
  for (int pad = 0; pad < 4; ++pad) {
    const Checkpoint checkpoint = Checkpoint::open(file_of(header + std::string(pad, ' '), 4));
    EXPECT_EQ(reinterpret_cast<uintptr_t>(checkpoint.tensor("a").raw()) % 4, 0u);
  }
}

TEST(Checkpoint, UnknownFormatsAreErrors) {
  const auto folder = testing::scratch_folder();
  const auto error_for = [&](const std::string& content) {
    std::ofstream(folder / "x.bin", std::ios::binary) << content;
    try {
      Checkpoint::open(folder / "x.bin");
    } catch (const Error& error) {
      EXPECT_NE(std::string(error.what()).find("x.bin"), std::string::npos);
      return std::string(error.what());
    }
    return std::string("no error");
  };
  EXPECT_NE(error_for("").find("empty file"), std::string::npos);
  EXPECT_NE(error_for("hello").find("unknown format"), std::string::npos);
  EXPECT_NE(error_for("version https://git-lfs.github.com/spec/v1\n").find("LFS"), std::string::npos);
  EXPECT_THROW(Checkpoint::open(folder / "absent"), Error);
  EXPECT_THROW(Checkpoint::open(folder), Error);
}

TEST(Checkpoint, DeitTinyOpens) {
  VITRAIL_NEED_ASSETS(assets);
  const Checkpoint checkpoint = Checkpoint::open(assets / "weights/deit_tiny_patch16_224.fb_in1k/model.safetensors");
  EXPECT_EQ(checkpoint.tensors().size(), 152u);
  int64_t parameters = 0;
  for (const TensorInfo& info : checkpoint.tensors()) parameters += info.shape.numel();
  EXPECT_EQ(parameters, 5717416);
}

// big_vision's scanned models have the layers as the first axis.
TEST(StackedLayers, AreTensorsOfTheirLayersInOrder) {
  const auto file = testing::scratch_folder() / "a.safetensors";
  const Tensor stacked = Tensor::from<float>({3, 2}, {0, 1, 10, 11, 20, 21});
  write_safetensors(file, {{"Transformer/encoderblock/LayerNorm_0/bias", stacked}, {"pos", Tensor::full({1}, 7)}}, {});
  const Checkpoint checkpoint = Checkpoint::open(file);
  EXPECT_EQ(checkpoint.tensors().size(), 4U);
  EXPECT_EQ(checkpoint.tensor("pos").data<float>()[0], 7);
  for (int64_t layer = 0; layer < 3; ++layer) {
    const Tensor row = checkpoint.tensor(str("Transformer/encoderblock_", layer, "/LayerNorm_0/bias")).contiguous();
    ASSERT_EQ(row.shape(), (Shape{2}));
    for (int64_t i = 0; i < 2; ++i) EXPECT_EQ(row.data<float>()[i], static_cast<float>(10 * layer + i));
  }
  write_safetensors(file, {{"encoderblock/x", Tensor::zeros({0, 2})}}, {});
  EXPECT_THROW(Checkpoint::open(file), Error);
}

}  // namespace
}  // namespace vitrail::weights
