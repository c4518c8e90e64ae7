// SPDX-License-Identifier: Apache-2.0
// Decodes the first frame of a GIF with giflib.
#include <gif_lib.h>

#include <algorithm>
#include <cstring>
#include <memory>

#include "vitrail/base/error.h"
#include "vitrail/image/codecs_internal.h"
#include "vitrail/image/color_internal.h"

namespace vitrail::image {
namespace {

struct Source {
  Bytes left;
};

int read_bytes(GifFileType* file, GifByteType* out, int count) {
  Bytes& left = static_cast<Source*>(file->UserData)->left;
  const size_t length = std::min(left.size(), static_cast<size_t>(count));
  std::memcpy(out, left.data(), length);
  left = left.subspan(length);
  return static_cast<int>(length);
}

struct Close {
  void operator()(GifFileType* file) const { DGifCloseFile(file, nullptr); }
};
using File = std::unique_ptr<GifFileType, Close>;

[[noreturn]] void fail(const std::string& where, int code) {
  const char* reason = GifErrorString(code);
  throw Error(where, "a complete GIF image", reason != nullptr ? reason : "broken data");
}

// Reads up to the first frame; returns the index of the transparent colour, or −1.
int find_frame(GifFileType& file, const std::string& where) {
  int transparent = -1;
  for (;;) {
    GifRecordType record;
    if (DGifGetRecordType(&file, &record) == GIF_ERROR) fail(where, file.Error);
    if (record == IMAGE_DESC_RECORD_TYPE) return transparent;
    if (record == TERMINATE_RECORD_TYPE) throw Error(where, "a GIF image", "a file without a frame");
    if (record != EXTENSION_RECORD_TYPE) continue;
    int function = 0;
    GifByteType* block = nullptr;  // a length byte and the data
    int status = DGifGetExtension(&file, &function, &block);
    while (status != GIF_ERROR && block != nullptr) {
      if (function == GRAPHICS_EXT_FUNC_CODE && block[0] >= 4 && (block[1] & 1) != 0) transparent = block[4];
      status = DGifGetExtensionNext(&file, &block);
    }
    if (status == GIF_ERROR) fail(where, file.Error);
  }
}

// The frame's palette, else the file's, else grey.  Colours beyond a palette's end are black.  If the palette is the
// beginning of a grey ramp, Pillow reads the file as a grey image with the full ramp.
Palette palette_of(const GifFileType& file) {
  const ColorMapObject* map = file.Image.ColorMap != nullptr ? file.Image.ColorMap : file.SColorMap;
  Palette ramp{}, palette{};
  bool is_ramp = true;
  for (int i = 0; i < 256; ++i) ramp[i].fill(static_cast<uint8_t>(i));
  for (int i = 0; map != nullptr && i < std::min(map->ColorCount, 256); ++i) {
    palette[i] = {map->Colors[i].Red, map->Colors[i].Green, map->Colors[i].Blue};
    is_ramp = is_ramp && palette[i] == ramp[i];
  }
  return is_ramp ? ramp : palette;
}

// Interlaced rows come in four passes: every 8th from 0, every 8th from 4, every 4th from 2, every 2nd from 1.
struct Pass {
  int first, step;
};
constexpr Pass kInterlaced[] = {{0, 8}, {4, 8}, {2, 4}, {1, 2}};
constexpr Pass kPlain[] = {{0, 1}};

void read_rows(GifFileType& file, Image& indices, const std::string& where) {
  const GifImageDesc& frame = file.Image;
  const std::span<const Pass> passes = frame.Interlace ? std::span<const Pass>(kInterlaced) : kPlain;
  for (const Pass& pass : passes) {
    for (int y = pass.first; y < frame.Height; y += pass.step) {
      if (DGifGetLine(&file, indices.row(frame.Top + y) + frame.Left, frame.Width) == GIF_ERROR)
        fail(where, file.Error);
    }
  }
}

}  // namespace

Image decode_gif(Bytes bytes, const DecodeOptions& options, const std::string& where) {
  Source source{bytes};
  int error = 0;
  const File file(DGifOpen(&source, read_bytes, &error));
  if (file == nullptr) fail(where, error);
  const int transparent = find_frame(*file, where);
  if (DGifGetImageDesc(file.get()) == GIF_ERROR) fail(where, file->Error);
  const GifImageDesc& frame = file->Image;
  // The canvas is enlarged to contain the frame.  Around the frame it has the transparent colour, or colour 0.
  const int64_t width = std::max(file->SWidth, frame.Left + frame.Width);
  const int64_t height = std::max(file->SHeight, frame.Top + frame.Height);
  check_size(width, height, options.max_pixels, where);
  check_size(frame.Width, frame.Height, options.max_pixels, where);
  reserve_pixels(where, width, height);
  Image indices = make_image(width, height, 1);
  if (transparent > 0) std::fill(indices.pixels.begin(), indices.pixels.end(), static_cast<uint8_t>(transparent));
  read_rows(*file, indices, where);
  return from_palette(indices.pixels, width, height, palette_of(*file), options.mode);
}

}  // namespace vitrail::image
