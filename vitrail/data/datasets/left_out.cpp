// SPDX-License-Identifier: Apache-2.0
#include "vitrail/data/datasets/left_out_internal.h"

#include <algorithm>
#include <array>
#include <map>
#include <utility>

#include "vitrail/base/error.h"

namespace vitrail::data {
namespace {

constexpr size_t kMaxKinds = 10;  // kinds that a message lists; it counts the others

// ".heic" of "a/b.HEIC"; empty without an extension.
std::string kind_of(std::string_view path) {
  const std::string_view name = path.substr(path.rfind('/') + 1);
  const size_t dot = name.rfind('.');
  if (dot == name.npos || dot == 0 || dot + 1 == name.size()) return "";
  std::string kind(name.substr(dot));
  for (char& c : kind) c = c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
  return kind;
}

}  // namespace

std::string left_out_text(const std::vector<std::string>& paths) {
  if (paths.empty()) return "";
  std::map<std::string, size_t> counts;
  for (const std::string& path : paths) ++counts[kind_of(path)];
  std::vector<std::pair<std::string, size_t>> kinds(counts.begin(), counts.end());
  std::stable_sort(kinds.begin(), kinds.end(), [](auto& a, auto& b) { return a.second > b.second; });
  std::string text = str(paths.size(), paths.size() == 1 ? " file" : " files", " left out: ");
  size_t others = 0;
  for (size_t i = 0; i < kinds.size(); ++i) {
    const auto& [kind, count] = kinds[i];
    if (i < kMaxKinds) {
      text += str(i == 0 ? "" : ", ", count, " ", kind.empty() ? "without an extension" : kind);
    } else {
      others += count;
    }
  }
  return others > 0 ? str(text, " and ", others, " of other kinds") : text;
}

bool is_unsupported_image(std::string_view path) {
  constexpr std::array kKinds{".heic", ".heif", ".hif", ".avif", ".jxl", ".jp2", ".j2k", ".jpx", ".jpc", ".svg",
                              ".svgz", ".ico",  ".psd", ".xcf",  ".tga", ".dds", ".exr", ".hdr", ".pcx", ".eps",
                              ".raw",  ".dng",  ".cr2", ".cr3",  ".nef", ".arw", ".orf", ".rw2", ".raf", ".pef",
                              ".srw",  ".dcm",  ".nii", ".pdf",  ".mp4", ".mov", ".avi", ".mkv", ".webm"};
  return std::find(kKinds.begin(), kKinds.end(), kind_of(path)) != kKinds.end();
}

bool is_ignored_name(std::string_view name) {
  constexpr std::array<std::string_view, 14> kNames{
      "__MACOSX",     "lost+found",        "Thumbs.db", "ehthumbs.db", "desktop.ini", "System Volume Information",
      "$RECYCLE.BIN", "RECYCLER",          "RECYCLED",  "@eaDir",      "#recycle",    "#snapshot",
      "@Recycle",     "@Recently-Snapshot"};
  return name.starts_with('.') || std::find(kNames.begin(), kNames.end(), name) != kNames.end();
}

}  // namespace vitrail::data
