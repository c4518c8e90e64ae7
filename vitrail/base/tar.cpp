// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <optional>
#include <string_view>
#include <unordered_map>

#include "vitrail/base/error.h"
#include "vitrail/base/round_up_internal.h"
#include "vitrail/base/tar_internal.h"

namespace vitrail {
namespace {

constexpr uint64_t kBlock = 512;
constexpr uint64_t kMaxName = 1 << 20;  // bytes of an extended header, which precedes the header of its file

// Fields of a header: position and size (struct posix_header).
struct Field {
  size_t offset, size;
};
constexpr Field kNameField{0, 100}, kSizeField{124, 12}, kChecksumField{148, 8}, kLinkField{157, 100},
    kMagicField{257, 5}, kPrefixField{345, 155};
constexpr size_t kType = 156;

using Header = std::span<const std::byte>;

std::string_view field(Header header, Field at) {
  const std::string_view text(reinterpret_cast<const char*>(header.data()) + at.offset, at.size);
  return text.substr(0, text.find('\0'));
}

// An octal number, or GNU's big-endian one, whose first bit is set.
std::optional<uint64_t> number(Header header, Field at) {
  uint64_t value = 0;
  if ((header[at.offset] & std::byte{0x80}) != std::byte{0}) {
    for (size_t i = 0; i < at.size; ++i) {
      const auto byte = static_cast<uint64_t>(header[at.offset + i]) & (i == 0 ? 0x7FU : 0xFFU);
      if (value > UINT64_MAX >> 8) return std::nullopt;
      value = value << 8 | byte;
    }
    return value;
  }
  std::string_view text = field(header, at);
  text.remove_prefix(std::min(text.find_first_not_of(' '), text.size()));
  text = text.substr(0, text.find(' '));
  for (const char digit : text) {
    if (digit < '0' || digit > '7') return std::nullopt;
    value = value << 3 | static_cast<uint64_t>(digit - '0');  // 12 digits do not overflow
  }
  return value;
}

// The sum of all bytes, with the checksum itself as spaces.
bool has_valid_checksum(Header header) {
  uint64_t sum = 0;
  for (size_t i = 0; i < kBlock; ++i) {
    const bool own = i >= kChecksumField.offset && i < kChecksumField.offset + kChecksumField.size;
    sum += own ? uint64_t{' '} : static_cast<uint64_t>(header[i]);
  }
  return number(header, kChecksumField) == sum;
}

bool is_zero(Header header) {
  return std::all_of(header.begin(), header.end(), [](std::byte b) { return b == std::byte{0}; });
}

std::string normalized(std::string_view path) {
  while (path.starts_with("./") || path.starts_with("/")) path.remove_prefix(path.starts_with("/") ? 1 : 2);
  return std::string(path == "." ? "" : path);
}

// What extended headers say about the next file.
struct Extended {
  std::optional<std::string> path, link;
  std::optional<uint64_t> size;
};

class TarReader {
 public:
  TarReader(std::span<const std::byte> archive, const std::string& where) : archive_(archive), where_(where) {}

  TarListing read() {
    while (at_ < archive_.size()) {
      if (archive_.size() - at_ < kBlock) fail("a complete archive", "a part of a header at its end");
      const Header header = archive_.subspan(at_, kBlock);
      if (is_zero(header)) {
        if (skip_end()) continue;
        listing_.trailing = archive_.size() - at_;
        break;
      }
      if (!has_valid_checksum(header)) fail("a tar header", str("other data at byte ", at_));
      at_ += kBlock;
      read_entry(header);
    }
    return std::move(listing_);
  }

 private:
  [[noreturn]] void fail(const std::string& expected, const std::string& got) const {
    throw Error(where_, expected, got);
  }

  // Skips the zeros that end an archive.  Returns whether another archive follows, as `cat` joins them.
  bool skip_end() {
    while (archive_.size() - at_ >= kBlock && is_zero(archive_.subspan(at_, kBlock))) at_ += kBlock;
    const auto remaining = archive_.subspan(at_);
    if (remaining.size() < kBlock && is_zero(remaining)) at_ = archive_.size();
    return is_tar(archive_.subspan(at_));
  }

  void read_entry(Header header) {
    const char type = static_cast<char>(header[kType]);
    const bool extends = type == 'x' || type == 'L' || type == 'K' || type == 'g';
    const std::optional<uint64_t> size = !extends && extended_.size ? extended_.size : number(header, kSizeField);
    const bool has_content = type != '1' && type != '2' && type != '5';
    if (!size) fail("the size of a file", str("no number before byte ", at_));
    if (has_content && *size > archive_.size() - at_)
      fail(str("a complete archive: ", *size, " bytes at byte ", at_), str(archive_.size() - at_, " bytes"));
    const uint64_t content = has_content ? *size : 0;
    if (extends) {
      if (content > kMaxName) fail(str("a name of at most ", kMaxName, " bytes"), str(content));
      extend(type, {reinterpret_cast<const char*>(archive_.data() + at_), content});
    } else {
      add(header, type, content);
      extended_ = {};
    }
    const uint64_t padded = round_up(content, kBlock);
    at_ += std::min<uint64_t>(padded, archive_.size() - at_);
  }

  void extend(char type, std::string_view content) {
    if (type == 'L') extended_.path = content.substr(0, content.find('\0'));
    if (type == 'K') extended_.link = content.substr(0, content.find('\0'));
    if (type == 'x') extend_pax(content);
  }

  // Records "LENGTH KEY=VALUE\n", whose length counts the whole record.
  void extend_pax(std::string_view records) {
    while (!records.empty()) {
      size_t length = 0, digits = 0;
      for (; digits < records.size() && digits < 8 && records[digits] >= '0' && records[digits] <= '9'; ++digits)
        length = 10 * length + static_cast<size_t>(records[digits] - '0');
      const bool valid =
          length > digits + 1 && length <= records.size() && records[digits] == ' ' && records[length - 1] == '\n';
      const std::string_view record = valid ? records.substr(digits + 1, length - digits - 2) : "";
      const size_t equals = record.find('=');
      if (equals == std::string_view::npos) fail("a pax header", str("a damaged one before byte ", at_));
      set_pax(record.substr(0, equals), record.substr(equals + 1));
      records.remove_prefix(length);
    }
  }

  void set_pax(std::string_view key, std::string_view value) {
    if (key == "path") extended_.path = value;
    if (key == "linkpath") extended_.link = value;
    if (key.starts_with("GNU.sparse.")) fail("files without holes", "a sparse file");
    if (key != "size") return;
    uint64_t size = 0;
    for (const char digit : value) {
      if (digit < '0' || digit > '9' || size > UINT64_MAX / 10 - 1)
        fail("the size of a file", "'" + std::string(value) + "'");
      size = 10 * size + static_cast<uint64_t>(digit - '0');
    }
    extended_.size = size;
  }

  void add(Header header, char type, uint64_t size) {
    std::string path(field(header, kNameField));
    const std::string_view prefix = field(header, kMagicField) == "ustar" ? field(header, kPrefixField) : "";
    if (header[kMagicField.offset + kMagicField.size] == std::byte{0} && !prefix.empty()) path = str(prefix, "/", path);
    path = normalized(extended_.path.value_or(path));
    if (type == 'S') fail("files without holes", "the sparse file " + path);
    if (type == '2') ++listing_.symbolic_links;
    if (path.empty()) return;
    if (type == '5' || (type == '\0' && path.ends_with('/'))) {
      listing_.entries.push_back({path.ends_with('/') ? path : path + "/"});
    } else if (type == '1') {
      const auto found = index_.find(normalized(extended_.link.value_or(std::string(field(header, kLinkField)))));
      if (found == index_.end()) return;  // as tar, which reports it
      const TarEntry target = listing_.entries[found->second];
      put({path, target.offset, target.size});
    } else if (type == '0' || type == '\0' || type == '7') {
      put({path, at_, size});
    }
  }

  void put(TarEntry entry) {
    const auto [found, is_new] = index_.try_emplace(entry.path, listing_.entries.size());
    if (is_new) {
      listing_.entries.push_back(std::move(entry));
    } else {
      listing_.entries[found->second] = std::move(entry);
      ++listing_.repeated;
    }
  }

  std::span<const std::byte> archive_;
  const std::string& where_;
  uint64_t at_ = 0;
  Extended extended_;
  TarListing listing_;
  std::unordered_map<std::string, size_t> index_;  // path → position of a file in the entries
};

}  // namespace

bool is_tar(std::span<const std::byte> archive) {
  return archive.size() >= kBlock && !is_zero(archive.first(kBlock)) && has_valid_checksum(archive.first(kBlock));
}

TarListing read_tar(std::span<const std::byte> archive, const std::string& where) {
  return TarReader(archive, where).read();
}

}  // namespace vitrail
