// SPDX-License-Identifier: Apache-2.0
#include "apps/vitrail/input/standard_input.h"

#include <poll.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <span>

#include "vitrail/base/callbacks.h"
#include "vitrail/base/error.h"
#include "vitrail/base/text.h"
#include "vitrail/image/decode.h"

namespace vitrail::app {
namespace {

constexpr size_t kSignatureBytes = 16, kMaxPathBytes = size_t{1} << 20;

bool is_control(char c) {
  return (static_cast<unsigned char>(c) < 0x20 && c != '\t' && c != '\n' && c != '\r') || c == 0x7f;
}

// Whether these bytes begin with a path that has ended, rather than with an image whose signature has not arrived yet.
bool begins_with_path(const std::string& bytes) {
  const size_t end = bytes.find_first_of(std::string_view("\n\0", 2));
  return end != bytes.npos && std::all_of(bytes.begin(), bytes.begin() + static_cast<ptrdiff_t>(end), [](char c) {
           return !is_control(c) && static_cast<unsigned char>(c) < 0x80;
         });
}

// Whether the bytes begin a netpbm image: P1 to P6, white space and the width or a comment.
bool begins_as_netpbm(std::string_view bytes) {
  return bytes.size() >= 4 && bytes[0] == 'P' && bytes[1] >= '1' && bytes[1] <= '6' &&
         std::isspace(static_cast<unsigned char>(bytes[2])) != 0 &&
         (bytes[3] == '#' || std::isdigit(static_cast<unsigned char>(bytes[3])) != 0);
}

// Whether the bytes begin a text file that is no list of paths, such as the page of a failed download.
bool begins_as_document(std::string_view bytes) {
  std::string lower(bytes);
  std::ranges::transform(lower, lower.begin(), [](unsigned char c) { return std::tolower(c); });
  constexpr const char* kBeginnings[] = {"<!doctype", "<html", "<?xml", "<svg", "%pdf-", "version https://"};
  return std::ranges::any_of(kBeginnings, [&](const char* beginning) { return lower.starts_with(beginning); });
}

}  // namespace

// Adds the bytes that have arrived.  False at the end.
bool StandardInput::read_more() {
  if (ended_) return false;
  buffer_.erase(0, begin_);
  begin_ = 0;
  std::array<char, 1 << 16> block{};
  pollfd descriptor{.fd = STDIN_FILENO, .events = POLLIN, .revents = 0};
  waiting_ = ::poll(&descriptor, 1, 0) == 0;
  ssize_t size = 0;
  do {
    size = ::read(STDIN_FILENO, block.data(), block.size());
  } while (size < 0 && errno == EINTR);
  const int reason = errno;
  waiting_ = false;
  ended_ = size <= 0;
  if (size < 0) throw Error(str("standard input: read failed: ", std::strerror(reason)));
  buffer_.append(block.data(), static_cast<size_t>(size));
  return !ended_;
}

bool StandardInput::is_image() {
  if (started_) return false;
  while (buffer_.size() < kSignatureBytes && !begins_with_path(buffer_) && read_more()) {
  }
  // The signature of some formats is text, with which a path could begin.
  const std::string_view first = std::string_view(buffer_).substr(0, kSignatureBytes);
  const std::span bytes = std::as_bytes(std::span(first));
  const bool binary = std::ranges::any_of(first, [](char c) { return is_control(c) || c == '\xff'; });
  if (binary && image::has_image_signature(bytes)) return true;
  return image::has_foreign_signature(bytes) || begins_as_document(first) ||
         begins_as_netpbm(first);  // the decoder's error names the format
}

std::vector<std::byte> StandardInput::image() {
  while (read_more()) {
    if (buffer_.size() > image::kMaxFileBytes)
      throw Error("standard input", str("an image file of at most ", image::kMaxFileBytes, " bytes"), "more");
  }
  const auto bytes = std::as_bytes(std::span(buffer_));
  std::vector<std::byte> content(bytes.begin(), bytes.end());
  buffer_.clear();
  return content;
}

std::optional<std::string> StandardInput::next_path() {
  constexpr std::string_view kByteOrderMark = "\xef\xbb\xbf";  // in front of lists that PowerShell writes
  if (!started_ && buffer_.compare(begin_, kByteOrderMark.size(), kByteOrderMark) == 0) begin_ += kByteOrderMark.size();
  started_ = true;
  for (size_t empty = 0;; ++empty) {
    if (empty > kMaxPathBytes) throw Error("standard input", "paths", str("more than ", kMaxPathBytes, " empty lines"));
    const size_t end = separator_known_ ? buffer_.find(separator_, begin_)
                                        : buffer_.find_first_of(std::string_view("\n\0", 2), begin_);
    if (end == buffer_.npos) {
      if (buffer_.size() - begin_ > kMaxPathBytes) throw Error("standard input", "paths", "a line of more than 1 MiB");
      if (read_more()) continue;
    } else if (!separator_known_) {
      separator_ = buffer_.find('\0') == buffer_.npos ? '\n' : '\0';
      separator_known_ = true;
      continue;
    }
    std::string path = buffer_.substr(begin_, end == buffer_.npos ? end : end - begin_);
    begin_ = end == buffer_.npos ? buffer_.size() : end + 1;
    if (separator_ != '\0' && path.ends_with('\r')) path.pop_back();
    if (path.find('\0') != path.npos) throw Error("standard input", "paths that end alike", "newlines and NULs");
    if (!path.empty()) return path;
    if (end != buffer_.npos) {
      ++blank_;
      continue;
    }
    if (blank_ > 0) warn(str("standard input: ", counted(blank_, "blank line"), " left out"));
    return std::nullopt;
  }
}

}  // namespace vitrail::app
