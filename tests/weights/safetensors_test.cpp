// SPDX-License-Identifier: Apache-2.0
#include "vitrail/weights/safetensors.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <fstream>
#include <optional>

#include "tests/support/errors.h"
#include "tests/support/messages.h"
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

std::string safetensors_error(const FileBytes& bytes) {
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
  has(safetensors_error(file_of("{}", 0, 3)), "truncated");
  has(safetensors_error(file_of("{}", 0, uint64_t{1} << 63)), "at most 100000000 bytes");
  has(safetensors_error(file_of("{", 0)), "JSON");
  has(safetensors_error(file_of("[1]", 0)), "object");
  has(safetensors_error(file_of("{\"a\":{\"b\":[[[[0]]]]}}", 0)), "nested deeper");
  has(safetensors_error(file_of("{\"a\":\"\xff\"}", 0)), "JSON");
  has(safetensors_error(file_of("{\"a\":1}", 0)), "dtype, shape and data_offsets");
  has(safetensors_error(file_of("{\"__metadata__\":{\"a\":1}}", 0)), "a string");
  has(safetensors_error(file_of("{\"a\":" + entry("F33", "[1]", "[0,4]") + "}", 4)), "F33");
  has(safetensors_error(file_of("{\"a\":" + entry("F32", "[-1]", "[0,4]") + "}", 4)), "-1");
  has(safetensors_error(file_of("{\"a\":" + entry("F32", "[1.5]", "[0,4]") + "}", 4)), "1.5");
  has(safetensors_error(file_of("{\"a\":" + entry("F32", "[1,1,1,1,1,1,1,1,1]", "[0,4]") + "}", 4)), "at most 8");
  has(safetensors_error(file_of("{\"a\":" + entry("F32", "[4294967296,4294967296]", "[0,4]") + "}", 4)), "2^63");
  has(safetensors_error(file_of("{\"a\":" + entry("F32", "[2]", "[0,4]") + "}", 4)), "8 bytes for F32 [2]");
  has(safetensors_error(file_of("{\"a\":" + entry("F32", "[1]", "[4,0]") + "}", 4)), "data_offsets 4 to 0");
  has(safetensors_error(file_of("{\"a\":" + entry("F32", "[2]", "[0,8]") + "}", 4)), "truncated");
  has(safetensors_error(file_of("{\"a\":" + entry("F32", "[1]", "[0,4]") + "}", 8)), "8 bytes");
  has(safetensors_error(
          file_of("{\"a\":" + entry("F32", "[1]", "[0,4]") + ",\"b\":" + entry("F32", "[1]", "[0,4]") + "}", 4)),
      "overlap");
  has(safetensors_error(
          file_of("{\"a\":" + entry("F32", "[1]", "[0,4]") + ",\"b\":" + entry("F32", "[1]", "[8,12]") + "}", 12)),
      "gap");
  has(safetensors_error(
          file_of("{\"a\":" + entry("F32", "[1]", "[0,4]") + ",\"a\":" + entry("F32", "[1]", "[4,8]") + "}", 8)),
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

TEST(Safetensors, TheErrorSaysWhatIsWrong) {
  const auto error = [](const FileBytes& bytes) {
    const std::string text = testing::error_of([&] { open_safetensors(bytes); });
    return text.substr(std::min(text.size(), std::string("bad.safetensors").size()));
  };
  const auto of = [&](const std::string& header, size_t data = 0) { return error(file_of(header, data)); };
  const auto a = [&](const std::string& dtype, const std::string& shape, const std::string& offsets, size_t data = 4) {
    return of("{\"a\":" + entry(dtype, shape, offsets) + "}", data);
  };
  EXPECT_EQ(error(FileBytes::hold(std::vector<std::byte>(7), "bad.safetensors")),
            ": expected a safetensors header of at least 8 bytes, got 7");
  EXPECT_EQ(error(file_of("{}", 0, 100'000'001)),
            ": expected a safetensors header of at most 100000000 bytes, got 100000001");
  EXPECT_EQ(error(file_of("{}", 0, 100'000'000)),
            ": expected a safetensors header inside the file's 10 bytes, got 100000000 bytes of header: the file is "
            "truncated or damaged");
  EXPECT_EQ(
      error(file_of("{}", 0, 3)),
      ": expected a safetensors header inside the file's 10 bytes, got 3 bytes of header: the file is truncated or "
      "damaged");
  EXPECT_EQ(of("[]"), ": expected a JSON object as safetensors header, got array");
  EXPECT_EQ(of(" "), ": expected JSON in the safetensors header, got nothing");
  EXPECT_EQ(of("{\"a\":{\"b\":[{}]}}"), ": expected a safetensors header, got JSON that is nested deeper");
  EXPECT_EQ(of("{\"a\":1,\"b\":2,\"a\":3}"), ": expected each name once in the safetensors header, got \"a\" twice");
  EXPECT_EQ(of("{\"__metadata__\":[]}"), ": expected __metadata__ as an object of strings, got array");
  EXPECT_ERROR(of("{\"__metadata__\":{\"a\":\"b\",\"c\":3}}"), ": __metadata__: c", "number");
  EXPECT_ERROR(of("{\"a\":{\"shape\":[1]}}"), ": a", "{\"shape\":[1]}");
  EXPECT_ERROR(of("{\"a\":{\"dtype\":\"U8\",\"shape\":[1]}}"), ": a", "{\"dtype\":\"U8\",\"shape\":[1]}");
  EXPECT_ERROR(of("{\"a\":{\"dtype\":\"U8\",\"data_offsets\":[0,1]}}"), ": a",
               "{\"data_offsets\":[0,1],\"dtype\":\"U8\"}");
  EXPECT_ERROR(of("{\"a\":\"" + std::string(90, 'x') + "\"}"), ": a", "\"" + std::string(76, 'x') + "...");
  EXPECT_ERROR(of("{\"a\":\"" + std::string(78, 'x') + "\"}"), ": a", "\"" + std::string(78, 'x') + "\"");
  EXPECT_ERROR(a("f32", "[1]", "[0,4]"), ": a", "\"f32\"");
  EXPECT_ERROR(of("{\"a\":{\"dtype\":7,\"shape\":[1],\"data_offsets\":[0,4]}}", 4), ": a", "7");
  EXPECT_ERROR(a("F32", "3", "[0,4]"), ": a", "3");
  EXPECT_ERROR(a("F32", "[1,1,1,1,1,1,1,1,1]", "[0,4]"), ": a", "[1,1,1,1,1,1,1,1,1]");
  EXPECT_ERROR(a("F32", "[-1]", "[0,4]"), ": a", "-1");
  EXPECT_ERROR(a("F32", "[9223372036854775808]", "[0,4]"), ": a", "9223372036854775808");
  EXPECT_ERROR(a("F32", "[true]", "[0,4]"), ": a", "true");
  EXPECT_ERROR(a("F32", "[1]", "[0]"), ": a", "[0]");
  EXPECT_ERROR(a("F32", "[1]", "[0,4,8]"), ": a", "[0,4,8]");
  EXPECT_ERROR(a("F32", "[1]", "4"), ": a", "4");
  EXPECT_ERROR(a("F32", "[1]", "[-4,0]"), ": a", "-4");
  EXPECT_ERROR(a("F32", "[1]", "[0,4.0]"), ": a", "4.0");
  EXPECT_ERROR(a("F64", "[4611686018427387904]", "[0,4]"), ": a", "4611686018427387904 elements of F64");
  EXPECT_ERROR(a("F4", "[3]", "[0,2]"), ": a", "3 elements of F4");
  EXPECT_ERROR(a("F32", "[2, 3]", "[0,23]", 23), ": a", "data_offsets 0 to 23");
  EXPECT_ERROR(a("F32", "[0]", "[4,3]"), ": a", "data_offsets 4 to 3");
  EXPECT_ERROR(a("F32", "[1]", "[4,8]", 8), ": a", "byte 4: a gap between tensors");
  const std::string first = "\"a\":" + entry("F32", "[2]", "[0,8]"), second = "\"b\":" + entry("U8", "[3]", "[6,9]");
  EXPECT_ERROR(of("{" + first + "," + second + "}", 9), ": b", "byte 6: the tensors overlap");
  EXPECT_ERROR(a("F32", "[2]", "[0,8]", 7), ": a", "an end at byte 8: the file is truncated or damaged");
  EXPECT_EQ(a("F32", "[1]", "[0,4]", 5), ": expected 4 bytes of tensors after the header, got 5 bytes");
  EXPECT_EQ(of("{}", 1), ": expected 0 bytes of tensors after the header, got 1 bytes");
  EXPECT_NO_THROW(open_safetensors(file_of("{}", 0)));
}

// The size of eight elements.
TEST(Safetensors, EachTypeHasItsSize) {
  struct Type {
    const char* name;
    int bytes;
    std::optional<DType> dtype;
  };
  const Type types[] = {{"F64", 64, DType::f64},
                        {"F32", 32, DType::f32},
                        {"F16", 16, DType::f16},
                        {"BF16", 16, DType::bf16},
                        {"I64", 64, DType::i64},
                        {"I32", 32, DType::i32},
                        {"I8", 8, DType::i8},
                        {"U8", 8, DType::u8},
                        {"BOOL", 8, DType::boolean},
                        {"F8_E4M3", 8, DType::f32},
                        {"F8_E5M2", 8, DType::f32},
                        {"I16", 16, {}},
                        {"U16", 16, {}},
                        {"U32", 32, {}},
                        {"U64", 64, {}},
                        {"C64", 64, {}},
                        {"F8_E8M0", 8, {}},
                        {"F6_E2M3", 6, {}},
                        {"F6_E3M2", 6, {}},
                        {"F4", 4, {}}};
  for (const Type& type : types) {
    const auto header = [&](int end) { return "{\"a\":" + entry(type.name, "[2, 4]", str("[0,", end, "]")) + "}"; };
    const auto file = open_safetensors(file_of(header(type.bytes), static_cast<size_t>(type.bytes)));
    ASSERT_EQ(file->tensors().size(), 1u);
    const TensorInfo& info = file->tensors()[0];
    EXPECT_EQ(info.name, "a");
    EXPECT_EQ(info.shape, (Shape{2, 4}));
    EXPECT_EQ(info.unsupported_dtype, type.dtype ? "" : type.name);
    if (type.dtype) {
      EXPECT_EQ(info.dtype, *type.dtype) << type.name;
      EXPECT_EQ(file->tensor(0).dtype(), *type.dtype) << type.name;
      EXPECT_EQ(file->tensor(0).shape(), (Shape{2, 4})) << type.name;
    } else {
      EXPECT_EQ(testing::error_of([&] { file->tensor(0); }),
                str("bad.safetensors: a: expected f64, f32, f16, bf16, i64, i32, i8, u8 or bool, got ", type.name));
    }
    EXPECT_NE(safetensors_error(file_of(header(type.bytes + 1), static_cast<size_t>(type.bytes) + 1)), "no error")
        << type.name;
  }
}

TEST(Safetensors, TensorsAreReadFromTheirPlaces) {
  const std::string header = "{\"z\":" + entry("U8", "[1]", "[0,1]") +
                             ",\"__metadata__\":{\"k\":\"v\",\"l\":\"\"},\"f\":" + entry("F8_E4M3", "[2]", "[1,3]") +
                             ",\"a\":" + entry("U8", "[2]", "[3,5]") + ",\"n\":" + entry("I64", "[0,5]", "[3,3]") +
                             ",\"s\":" + entry("U8", "[]", "[5,6]") + "}";
  std::string bytes;
  for (int i = 0; i < 8; ++i) bytes += static_cast<char>(header.size() >> (8 * i));
  bytes += header + "\x05\x38\xb8\x06\x07\x08";
  const auto* data = reinterpret_cast<const std::byte*>(bytes.data());
  const Checkpoint file = Checkpoint::open(FileBytes::hold({data, data + bytes.size()}, "good.safetensors"));
  EXPECT_EQ(file.names(), (std::vector<std::string>{"a", "f", "n", "s", "z"}));
  EXPECT_EQ(file.metadata(), (std::map<std::string, std::string>{{"k", "v"}, {"l", ""}}));
  EXPECT_EQ(file.tensor("z").data<uint8_t>()[0], 5);
  EXPECT_EQ(file.tensor("a").data<uint8_t>()[1], 7);
  EXPECT_EQ(file.tensor("s").data<uint8_t>()[0], 8);
  EXPECT_EQ(file.tensor("f").data<float>()[0], 1);
  EXPECT_EQ(file.tensor("f").data<float>()[1], -1);
  EXPECT_EQ(file.tensor("n").shape(), (Shape{0, 5}));
}

// Tensors are sorted by descending element size, as the reference implementation orders the types, then by name.
TEST(Safetensors, TheBytesOfAFileAreThoseOfTheFormat) {
  const auto path = testing::scratch_folder() / "a.safetensors";
  const auto one = [](DType dtype) { return Tensor::full({1}, 1, dtype); };
  write_safetensors(path,
                    {{"flag", one(DType::boolean)},
                     {"u8", one(DType::u8)},
                     {"i8", one(DType::i8)},
                     {"f16", one(DType::f16)},
                     {"bf16", one(DType::bf16)},
                     {"i32", one(DType::i32)},
                     {"f32_b", Tensor::full({2, 1}, 1)},
                     {"f32_a", one(DType::f32)},
                     {"f64", one(DType::f64)},
                     {"i64", one(DType::i64)},
                     {"none", Tensor::zeros({0})}},
                    {{"b", "2"}, {"a", "1"}});
  std::string header = R"({"__metadata__":{"a":"1","b":"2"},)"
                       R"("i64":{"dtype":"I64","shape":[1],"data_offsets":[0,8]},)"
                       R"("f64":{"dtype":"F64","shape":[1],"data_offsets":[8,16]},)"
                       R"("f32_a":{"dtype":"F32","shape":[1],"data_offsets":[16,20]},)"
                       R"("f32_b":{"dtype":"F32","shape":[2,1],"data_offsets":[20,28]},)"
                       R"("none":{"dtype":"F32","shape":[0],"data_offsets":[28,28]},)"
                       R"("i32":{"dtype":"I32","shape":[1],"data_offsets":[28,32]},)"
                       R"("bf16":{"dtype":"BF16","shape":[1],"data_offsets":[32,34]},)"
                       R"("f16":{"dtype":"F16","shape":[1],"data_offsets":[34,36]},)"
                       R"("i8":{"dtype":"I8","shape":[1],"data_offsets":[36,37]},)"
                       R"("u8":{"dtype":"U8","shape":[1],"data_offsets":[37,38]},)"
                       R"("flag":{"dtype":"BOOL","shape":[1],"data_offsets":[38,39]}})";
  header.resize((header.size() + 7) / 8 * 8, ' ');
  std::string want;
  for (int i = 0; i < 8; ++i) want += static_cast<char>(header.size() >> (8 * i));
  want += header + std::string("\1\0\0\0\0\0\0\0", 8) + std::string("\0\0\0\0\0\0\xf0\x3f", 8);
  for (int i = 0; i < 3; ++i) want += std::string("\0\0\x80\x3f", 4);
  want += std::string("\1\0\0\0\x80\x3f\0\x3c\1\1\1", 11);
  const FileBytes file = FileBytes::map(path);
  EXPECT_EQ(std::string(reinterpret_cast<const char*>(file.data.data()), file.data.size()), want);
}

TEST(Safetensors, AnEmptyFileAndOneOfLittleMetadataCanBeWritten) {
  const auto path = testing::scratch_folder() / "a.safetensors";
  const auto written = [&](const std::map<std::string, std::string>& metadata) {
    write_safetensors(path, {}, metadata);
    const FileBytes file = FileBytes::map(path);
    return std::string(reinterpret_cast<const char*>(file.data.data()), file.data.size());
  };
  EXPECT_EQ(written({}), std::string("\x08\0\0\0\0\0\0\0{}      ", 16));
  EXPECT_EQ(written({{"k", "v"}}), std::string("\x20\0\0\0\0\0\0\0{\"__metadata__\":{\"k\":\"v\"}}      ", 40));
  EXPECT_EQ(written({{"k", "value67"}}), std::string("\x20\0\0\0\0\0\0\0{\"__metadata__\":{\"k\":\"value67\"}}", 40))
      << "a multiple of eight";
}

TEST(Safetensors, TheErrorSaysWhatCannotBeWritten) {
  const auto path = testing::scratch_folder() / "a.safetensors";
  const Tensor t = Tensor::zeros({1}), other = Tensor::zeros({1}, DType::i8);
  const std::string where = path.string() + ": expected ";
  EXPECT_EQ(testing::error_of([&] {
              write_safetensors(path, {{"b", t}, {"a", t}, {"b", other}});
            }),
            where + "each tensor name once, got \"b\" twice");
  EXPECT_EQ(testing::error_of([&] {
              write_safetensors(path, {{"a", t}, {"__metadata__", t}});
            }),
            where + "tensor names, got \"__metadata__\", which the format reserves");
  EXPECT_ERROR(testing::error_of([&] { write_safetensors(path, {{"a\xff", t}}); }), "safetensors", "other bytes");
  EXPECT_ERROR(testing::error_of([&] {
                 write_safetensors(path, {{"a", t}}, {{"k", "\xff"}});
               }),
               "safetensors", "other bytes");
  EXPECT_FALSE(std::filesystem::exists(path));
}

TEST(StackedLayers, KeepWhatElseTheFileHas) {
  const auto file = testing::scratch_folder() / "a.safetensors";
  write_safetensors(file,
                    {{"a/encoderblock/x/encoderblock/y", Tensor::from<float>({2, 1, 3}, {0, 1, 2, 3, 4, 5})},
                     {"b/encoderblock/scale", Tensor::from<int32_t>({1}, {9})},
                     {"encoderblock_0/z", Tensor::full({2}, 7)},
                     {"encoderblock", Tensor::full({2}, 8)}},
                    {{"format", "big_vision"}});
  const Checkpoint checkpoint = Checkpoint::open(file);
  EXPECT_EQ(checkpoint.format(), "safetensors");
  EXPECT_EQ(checkpoint.metadata(), (std::map<std::string, std::string>{{"format", "big_vision"}}));
  EXPECT_EQ(checkpoint.names(),
            (std::vector<std::string>{"a/encoderblock_0/x/encoderblock/y", "a/encoderblock_1/x/encoderblock/y",
                                      "b/encoderblock_0/scale", "encoderblock", "encoderblock_0/z"}));
  const Tensor second = checkpoint.tensor("a/encoderblock_1/x/encoderblock/y").contiguous();
  EXPECT_EQ(second.shape(), (Shape{1, 3}));
  EXPECT_EQ(second.data<float>()[2], 5);
  EXPECT_EQ(checkpoint.info("a/encoderblock_1/x/encoderblock/y").shape, (Shape{1, 3}));
  EXPECT_EQ(checkpoint.info("b/encoderblock_0/scale").shape, Shape{});
  EXPECT_EQ(checkpoint.info("b/encoderblock_0/scale").dtype, DType::i32);
  EXPECT_EQ(checkpoint.tensor("b/encoderblock_0/scale").item<int32_t>(), 9);
  EXPECT_EQ(checkpoint.tensor("encoderblock").data<float>()[1], 8);
  EXPECT_EQ(checkpoint.tensor("encoderblock_0/z").data<float>()[1], 7);
}

TEST(StackedLayers, AreFromOneTo4096) {
  const auto file = testing::scratch_folder() / "a.safetensors";
  write_safetensors(file, {{"encoderblock/x", Tensor::zeros({4096, 1}, DType::u8)}}, {});
  EXPECT_EQ(Checkpoint::open(file).tensors().size(), 4096u);
  for (const Shape& shape : {Shape{4097}, Shape{0, 2}, Shape{}}) {
    write_safetensors(file, {{"encoderblock/x", Tensor::zeros(shape, DType::u8)}}, {});
    EXPECT_ERROR(testing::error_of([&] { Checkpoint::open(file); }), file.string() + ": encoderblock/x",
                 shape.to_string());
  }
}

// Layers without elements would take any number of names from a small file.
TEST(StackedLayers, AreAtMost100000Tensors) {
  const auto file = testing::scratch_folder() / "a.safetensors";
  std::vector<std::pair<std::string, Tensor>> tensors;
  for (int i = 0; i < 25; ++i) tensors.emplace_back(str("encoderblock/", i), Tensor::zeros({4096, 0}));
  write_safetensors(file, tensors, {});
  EXPECT_ERROR(testing::error_of([&] { Checkpoint::open(file); }), file.string(), "more");
}

}  // namespace
}  // namespace vitrail::weights
