// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "vitrail/base/error.h"
#include "vitrail/base/inflater_internal.h"

namespace vitrail {
namespace {

constexpr uint64_t kMaxBytesPerCall = uint64_t{1} << 30;  // zlib counts bytes in 32 bits

}  // namespace

Inflater::Inflater(int window_bits, const std::string& where) {
  if (::inflateInit2(&stream_, window_bits) != Z_OK) throw Error(where + ": zlib cannot be started");
}

Inflater::Step Inflater::inflate(std::span<const std::byte>& compressed, std::span<std::byte> content) {
  const uint64_t in = std::min<uint64_t>(kMaxBytesPerCall, compressed.size());
  const uint64_t out = std::min<uint64_t>(kMaxBytesPerCall, content.size());
  stream_.next_in = const_cast<Bytef*>(reinterpret_cast<const Bytef*>(compressed.data()));
  stream_.avail_in = static_cast<uInt>(in);
  stream_.next_out = reinterpret_cast<Bytef*>(content.data());
  stream_.avail_out = static_cast<uInt>(out);
  const int status = ::inflate(&stream_, Z_NO_FLUSH);
  compressed = compressed.subspan(in - stream_.avail_in);
  return {status, out - stream_.avail_out};
}

}  // namespace vitrail
