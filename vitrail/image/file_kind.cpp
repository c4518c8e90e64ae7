// SPDX-License-Identifier: Apache-2.0
#include "vitrail/image/file_kind_internal.h"

#include <algorithm>
#include <string_view>

#include "vitrail/image/decode.h"

namespace vitrail::image {
namespace {

using std::string_view;

struct Kind {
  size_t offset;
  string_view magic, name;
};

constexpr Kind kImages[] = {{0, "\xff\x0a", "JPEG XL"},
                            {0, {"\0\0\0\x0cJXL \r\n\x87\n", 12}, "JPEG XL"},
                            {0, {"\0\0\0\x0cjP  \r\n\x87\n", 12}, "JPEG 2000"},
                            {0, "\xff\x4f\xff\x51", "JPEG 2000"},
                            {4, "ftypcrx ", "a Canon raw image"},
                            {0, {"\0\0\x01\0", 4}, "ICO"},
                            {0, {"\0\0\x02\0\0\0", 6}, "TGA"},
                            {0, {"\0\0\x0a\0\0\0", 6}, "TGA"},
                            {0, {"\0\0\x02\0", 4}, "CUR"},
                            {0, "8BPS", "PSD (Photoshop)"},
                            {0, "gimp xcf", "XCF (GIMP)"},
                            {0, "DDS ", "DDS"},
                            {0, "qoif", "QOI"},
                            {0, "#?RADIANCE", "Radiance HDR"},
                            {0, "v/1\x01", "OpenEXR"},
                            {0, "IIRO", "an Olympus raw image"},
                            {0, "IIU", "a Panasonic raw image"},
                            {0, "FUJIFILM", "a Fujifilm raw image"},
                            {0, "%!PS", "PostScript"},
                            {0, "Pf", "PFM"},
                            {0, "PF", "PFM"},
                            {0, "P7", "PAM"},
                            {128, "DICM", "DICOM"},
                            {4, "ftyp", "a video or another ISO media file"},
                            {0, "%PDF-", "PDF"}};
constexpr Kind kOthers[] = {{0, "version https://git-lfs", "a Git LFS pointer: fetch it with git lfs pull"},
                            {0, {"\0\x05\x16\x07", 4}, "an AppleDouble file of macOS"},
                            {0, "PK\x03\x04", "a zip archive"},
                            {0, "\x1f\x8b", "a gzip file"},
                            {0, "\x93NUMPY", "a NumPy array"},
                            {0, "\x1a\x45\xdf\xa3", "a video (Matroska or WebM)"},
                            {0, "Rar!\x1a", "a RAR archive"},
                            {0, "7z\xbc\xaf\x27\x1c", "a 7z archive"}};

// HEIC and AVIF are ISO media files; their first box lists brands of four characters.
std::string describe_media(string_view text) {
  if (!text.substr(std::min<size_t>(4, text.size())).starts_with("ftyp")) return "";
  const string_view brands = text.substr(0, std::min<size_t>(64, static_cast<unsigned char>(text[3])));
  const auto has_brand = [&](string_view brand) { return brands.find(brand, 8) != brands.npos; };
  if (has_brand("avif") || has_brand("avis")) return "AVIF";
  if (has_brand("hei") || has_brand("hev") || has_brand("mif1") || has_brand("msf1")) return "HEIC";
  return "";
}

string_view text_of(Bytes bytes) { return {reinterpret_cast<const char*>(bytes.data()), bytes.size()}; }

bool has(string_view text, const Kind& kind) {
  return text.size() >= kind.offset && text.substr(kind.offset).starts_with(kind.magic);
}

// The beginning of a text file in lower case, without a byte order mark and white space in front.
std::string text_beginning(string_view text) {
  if (text.starts_with("\xef\xbb\xbf")) text.remove_prefix(3);
  text.remove_prefix(std::min(text.find_first_not_of(" \t\r\n"), text.size()));
  std::string beginning(text.substr(0, 1024));
  for (char& c : beginning) c = c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
  return beginning;
}

// Markup and other text, whose first tag may follow a prolog and comments.
std::string describe_text(string_view text) {
  const std::string beginning = text_beginning(text);
  const auto has_tag = [&](string_view tag) { return beginning.find(tag) != beginning.npos; };
  if (beginning.starts_with("<")) {
    if (has_tag("<svg")) return "SVG, which is not read: convert it to PNG";
    if (has_tag("<!doctype html") || has_tag("<html") || has_tag("<head") || has_tag("<body"))
      return "an HTML page: the download gave a web page instead of the image";
    return "an XML or HTML file";
  }
  if (beginning.starts_with("{\"") || beginning.starts_with("{\n")) return "a JSON file";
  return "";
}

// Whether text cannot begin with these bytes.
bool is_binary(string_view bytes) {
  return std::ranges::any_of(bytes, [](char c) { return static_cast<unsigned char>(c) < 0x20 || c == 0x7f; });
}

}  // namespace

bool has_foreign_signature(Bytes bytes) {
  const string_view text = text_of(bytes);
  const auto fits = [&](const Kind& kind) {
    return has(text, kind) && is_binary(text.substr(0, kind.offset + kind.magic.size()));
  };
  return std::ranges::any_of(kImages, fits) || std::ranges::any_of(kOthers, fits);
}

std::string describe_file(Bytes bytes) {
  if (bytes.empty()) return "an empty file";
  const string_view text = text_of(bytes);
  std::string image = describe_media(text);
  for (const Kind& kind : kImages) {
    if (image.empty() && has(text, kind)) image = kind.name;
  }
  if (!image.empty()) return image + ", which is not read: convert it to JPEG or PNG";
  for (const Kind& kind : kOthers) {
    if (has(text, kind)) return std::string(kind.name);
  }
  const std::string described = describe_text(text);
  if (!described.empty()) return described;
  const bool is_zero = std::all_of(text.begin(), text.end(), [](char c) { return c == 0; });
  return is_zero ? "a file of zeros" : "an unknown format";
}

}  // namespace vitrail::image
