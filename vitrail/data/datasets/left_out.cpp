// SPDX-License-Identifier: Apache-2.0
#include "vitrail/data/datasets/left_out_internal.h"

#include <algorithm>
#include <array>
#include <utility>

#include "vitrail/base/error.h"
#include "vitrail/base/text.h"

namespace vitrail::data {

std::string kind_of_file(std::string_view path) {
  const std::string_view name = path.substr(path.rfind('/') + 1);
  const size_t dot = name.rfind('.');
  if (dot == name.npos || dot == 0 || dot + 1 == name.size()) return "without an extension";
  std::string kind(name.substr(dot));
  for (char& c : kind) c = c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
  return kind;
}

std::string left_out_text(const std::vector<std::string>& paths) {
  LeftOut files;
  for (const std::string& path : paths) ++files[kind_of_file(path)];
  return left_out_kinds(files);
}

std::string left_out_kinds(const LeftOut& files) {
  constexpr size_t kMaxKinds = 10;  // that are listed; the others are counted
  if (files.empty()) return "";
  std::vector<std::pair<std::string, int64_t>> kinds(files.begin(), files.end());
  std::stable_sort(kinds.begin(), kinds.end(), [](auto& a, auto& b) { return a.second > b.second; });
  int64_t all = 0, others = 0;
  std::string text;
  for (size_t i = 0; i < kinds.size(); ++i) {
    const auto& [kind, count] = kinds[i];
    all += count;
    if (i < kMaxKinds) {
      text += str(i == 0 ? "" : ", ", count, " ", kind);
    } else {
      others += count;
    }
  }
  text = str(counted(all, "file"), " left out: ", text);
  return others > 0 ? str(text, " and ", others, " of other kinds") : text;
}

bool is_unsupported_image(std::string_view path) {
  constexpr std::array kKinds{".heic", ".heif", ".hif", ".avif", ".jxl", ".jp2", ".j2k", ".jpx", ".jpc", ".svg",
                              ".svgz", ".ico",  ".psd", ".xcf",  ".tga", ".dds", ".exr", ".hdr", ".pcx", ".eps",
                              ".raw",  ".dng",  ".cr2", ".cr3",  ".nef", ".arw", ".orf", ".rw2", ".raf", ".pef",
                              ".srw",  ".dcm",  ".nii", ".pdf",  ".mp4", ".mov", ".avi", ".mkv", ".webm"};
  return std::find(kKinds.begin(), kKinds.end(), kind_of_file(path)) != kKinds.end();
}

bool is_ignored_name(std::string_view name) {
  constexpr std::array<std::string_view, 14> kNames{
      "__MACOSX",     "lost+found",        "Thumbs.db", "ehthumbs.db", "desktop.ini", "System Volume Information",
      "$RECYCLE.BIN", "RECYCLER",          "RECYCLED",  "@eaDir",      "#recycle",    "#snapshot",
      "@Recycle",     "@Recently-Snapshot"};
  return name.starts_with('.') || std::find(kNames.begin(), kNames.end(), name) != kNames.end();
}

bool is_ignored_path(std::string_view path) {
  for (size_t begin = 0, end = 0; end != path.npos; begin = end + 1) {
    end = path.find('/', begin);
    if (is_ignored_name(path.substr(begin, end - begin))) return true;
  }
  return false;
}

}  // namespace vitrail::data
