// SPDX-License-Identifier: Apache-2.0
#pragma once
// Compresses what tests decompress.
#include <gtest/gtest.h>
#include <zlib.h>

#include <cstddef>
#include <string>
#include <vector>

namespace vitrail::testing {

// What surrounds the deflate data: zlib's window bits.
constexpr int kGzipFormat = 15 + 16, kZlibFormat = 15, kRawFormat = -15;

inline std::string deflated(const std::string& content, int format) {
  z_stream stream{};
  EXPECT_EQ(::deflateInit2(&stream, Z_BEST_COMPRESSION, Z_DEFLATED, format, 8, Z_DEFAULT_STRATEGY), Z_OK);
  std::string result(::deflateBound(&stream, content.size()), '\0');
  stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(content.data()));
  stream.avail_in = static_cast<uInt>(content.size());
  stream.next_out = reinterpret_cast<Bytef*>(result.data());
  stream.avail_out = static_cast<uInt>(result.size());
  EXPECT_EQ(::deflate(&stream, Z_FINISH), Z_STREAM_END);
  result.resize(stream.total_out);
  ::deflateEnd(&stream);
  return result;
}

inline std::vector<std::byte> deflated_bytes(const std::string& content, int format) {
  const std::string data = deflated(content, format);
  const auto* bytes = reinterpret_cast<const std::byte*>(data.data());
  return {bytes, bytes + data.size()};
}

inline std::string gzipped(const std::string& content) { return deflated(content, kGzipFormat); }

}  // namespace vitrail::testing
