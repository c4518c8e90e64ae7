// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <array>
#include <cstdint>

#include "vitrail/base/base64_internal.h"
#include "vitrail/base/error.h"

namespace vitrail {
namespace {

constexpr std::string_view kLetters = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

// The value of each letter; −1 for other characters.
constexpr std::array<int8_t, 256> kValues = [] {
  std::array<int8_t, 256> values{};
  values.fill(-1);
  for (size_t i = 0; i < kLetters.size(); ++i) values[static_cast<unsigned char>(kLetters[i])] = static_cast<int8_t>(i);
  return values;
}();

}  // namespace

std::string to_base64(std::span<const std::byte> bytes) {
  std::string text;
  text.reserve((bytes.size() + 2) / 3 * 4);
  for (size_t i = 0; i < bytes.size(); i += 3) {
    const size_t count = std::min<size_t>(3, bytes.size() - i);
    uint32_t bits = 0;
    for (size_t k = 0; k < 3; ++k) bits = bits << 8 | (k < count ? std::to_integer<uint32_t>(bytes[i + k]) : 0);
    for (size_t k = 0; k < 4; ++k) text += k <= count ? kLetters[bits >> (18 - 6 * k) & 63] : '=';
  }
  return text;
}

std::string from_base64(std::string_view text, const std::string& where) {
  constexpr std::string_view kBreaks = "\r\n";
  if (text.find_first_of(kBreaks) != text.npos) {
    std::string letters_alone(text);
    std::erase_if(letters_alone, [&](char c) { return kBreaks.find(c) != kBreaks.npos; });
    return from_base64(letters_alone, where);
  }
  const auto damaged = [&](const char* what) { return Error(where, "base64 with padding", what); };
  if (text.size() % 4 != 0) throw damaged("a length that is no multiple of 4");
  const size_t padding = text.ends_with("==") ? 2 : text.ends_with('=') ? 1 : 0;
  const size_t letters = text.size() - padding;
  std::string bytes;
  bytes.reserve(text.size() / 4 * 3);
  uint32_t bits = 0;
  for (size_t i = 0; i < letters; ++i) {
    const int8_t value = kValues[static_cast<unsigned char>(text[i])];
    if (value < 0) throw damaged("another character");
    bits = bits << 6 | static_cast<uint32_t>(value);
    if (i % 4 != 3) continue;
    for (const int shift : {16, 8, 0}) bytes += static_cast<char>(bits >> shift & 255);
    bits = 0;
  }
  if (padding > 0 && (bits & (padding == 1 ? 3U : 15U)) != 0) throw damaged("bits after the last byte");
  if (padding == 1) bytes += {static_cast<char>(bits >> 10 & 255), static_cast<char>(bits >> 2 & 255)};
  if (padding == 2) bytes += static_cast<char>(bits >> 4 & 255);
  return bytes;
}

std::string from_data_uri(std::string_view uri, const std::string& where) {
  const size_t comma = std::min(uri.find(','), uri.size());
  if (!uri.starts_with("data:") || !uri.substr(0, comma).ends_with(";base64"))
    throw Error(where, "a data URI, data:image/…;base64,… (URLs are not fetched)", std::string(uri.substr(0, 24)));
  return from_base64(uri.substr(std::min(comma + 1, uri.size())), where);
}

std::string from_base64_or_uri(std::string_view text, const std::string& where) {
  const bool is_uri = text.starts_with("data:") || text.substr(0, 16).find("://") != text.npos;
  return is_uri ? from_data_uri(text, where) : from_base64(text, where);
}

}  // namespace vitrail
