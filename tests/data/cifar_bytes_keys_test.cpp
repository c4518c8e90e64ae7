// SPDX-License-Identifier: Apache-2.0
// CIFAR's files for Python, read with encoding="bytes" and written again: the keys of the dict are bytes.
#include "tests/data/support.h"
#include "vitrail/data/datasets/cifar_batch_internal.h"

namespace vitrail::data {
namespace {

using namespace std::string_literals;

CifarFile pickled_file(const std::string& content) {
  const auto owner = std::make_shared<const std::string>(content);
  return {"x", std::as_bytes(std::span(*owner)), owner};
}

// Bytes as protocol 3 and above has them, and as the call that protocol 2 has.
std::string short_bytes(const std::string& text) { return 'C' + std::string(1, static_cast<char>(text.size())) + text; }
std::string encoded_bytes(const std::string& text) {
  return "c_codecs\nencode\n(U" + std::string(1, static_cast<char>(text.size())) + text + "U\x06latin1tR";
}

TEST(CifarBytesKeys, AreKeysAsStringsAre) {
  const CifarVariant variant{.is_pickle = true, .classes = 10, .labels_key = "labels"};
  const std::string pixels = "T\x00\x0c\x00\x00"s + std::string(kCifarPixels, 'p');
  const std::string array = "cnumpy\nndarray\n)R(K\x01(K\x01M\x00\x0ctN\x89"s + pixels + "tb";
  for (const auto& bytes : {short_bytes, encoded_bytes}) {
    const CifarBatch batch = read_cifar_pickle(
        pickled_file("\x80\x02}(" + bytes("labels") + "](K\x07" + "e" + bytes("data") + array + "u."), variant);
    EXPECT_EQ(batch.labels, std::vector<int64_t>{7});
    EXPECT_EQ(batch.pixels[kCifarPixels - 1], std::byte{'p'});
    EXPECT_EQ(
        read_pickled_names(pickled_file("\x80\x02}(" + bytes("n") + "](" + bytes("cat") + "U\x03" + "dogeu."), "n"),
        (std::vector<std::string>{"cat", "dog"}));
  }
}

}  // namespace
}  // namespace vitrail::data
