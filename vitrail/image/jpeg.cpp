// SPDX-License-Identifier: Apache-2.0
// Decodes JPEG with libjpeg-turbo and Pillow's settings, which are the defaults: accurate integer DCT, smooth
// upsampling.
//
// libjpeg reports errors by longjmp.  Functions that call setjmp have no local objects with destructors; the state is
// in a JpegReader that outlives them.
#include <cstdio>
// libjpeg's header needs FILE and size_t declared before it.
#include <jpeglib.h>
// jerror.h needs jpeglib.h.
#include <jerror.h>

#include <csetjmp>
#include <vector>

#include "vitrail/base/error.h"
#include "vitrail/image/codecs_internal.h"
#include "vitrail/image/color_internal.h"

namespace vitrail::image {
namespace {

// Limits the decoding time of hostile files: a progressive file can have any number of scans, and each is a pass over
// the image.  Encoders write about ten.
constexpr int kMaxScans = 500;

struct JpegReader {
  jpeg_decompress_struct info{};
  jpeg_error_mgr errors{};
  jpeg_source_mgr source{};
  jpeg_progress_mgr progress{};
  std::jmp_buf failed;
  char message[JMSG_LENGTH_MAX] = "";

  ~JpegReader() { jpeg_destroy_decompress(&info); }
};

[[noreturn]] void on_jpeg_error(j_common_ptr info) {
  JpegReader& reader = *static_cast<JpegReader*>(info->client_data);
  info->err->format_message(info, reader.message);
  std::longjmp(reader.failed, 1);
}

// Warnings (damaged but readable data) are ignored, as in Pillow.
void ignore_message(j_common_ptr, int) {}
void print_nothing(j_common_ptr) {}

// The complete file is in memory, so a request for more input means that it is truncated.
boolean no_more_input(j_decompress_ptr info) {
  ERREXIT(info, JERR_INPUT_EOF);
  return FALSE;
}

void skip_input(j_decompress_ptr info, long count) {
  if (count <= 0) return;
  if (static_cast<size_t>(count) > info->src->bytes_in_buffer) no_more_input(info);
  info->src->next_input_byte += count;
  info->src->bytes_in_buffer -= static_cast<size_t>(count);
}

void nothing(j_decompress_ptr) {}

void limit_scans(j_common_ptr info) {
  if (reinterpret_cast<j_decompress_ptr>(info)->input_scan_number > kMaxScans) ERREXIT(info, JERR_BAD_PROGRESSION);
}

bool read_header(JpegReader& reader, Bytes bytes) {
  reader.info.err = jpeg_std_error(&reader.errors);
  reader.errors.error_exit = on_jpeg_error;
  reader.errors.emit_message = ignore_message;
  reader.errors.output_message = print_nothing;
  reader.info.client_data = &reader;
  if (setjmp(reader.failed) != 0) return false;
  jpeg_create_decompress(&reader.info);
  reader.progress.progress_monitor = limit_scans;
  reader.info.progress = &reader.progress;
  reader.source.next_input_byte = reinterpret_cast<const JOCTET*>(bytes.data());
  reader.source.bytes_in_buffer = bytes.size();
  reader.source.init_source = nothing;
  reader.source.fill_input_buffer = no_more_input;
  reader.source.skip_input_data = skip_input;
  reader.source.resync_to_restart = jpeg_resync_to_restart;
  reader.source.term_source = nothing;
  reader.info.src = &reader.source;
  jpeg_read_header(&reader.info, TRUE);
  switch (reader.info.num_components) {
    case 1:
      reader.info.out_color_space = JCS_GRAYSCALE;
      break;
    case 3:
      reader.info.out_color_space = JCS_RGB;
      break;
    case 4:
      reader.info.out_color_space = JCS_CMYK;
      break;
    default:
      ERREXIT1(&reader.info, JERR_COMPONENT_COUNT, reader.info.num_components);
  }
  return true;
}

bool read_jpeg_pixels(JpegReader& reader, uint8_t* pixels, size_t row_bytes) {
  if (setjmp(reader.failed) != 0) return false;
  jpeg_start_decompress(&reader.info);
  while (reader.info.output_scanline < reader.info.output_height) {
    JSAMPROW rows[4];  // the upsampler produces up to 4 rows at once
    const JDIMENSION left = reader.info.output_height - reader.info.output_scanline;
    const JDIMENSION count = left < 4 ? left : 4;
    for (JDIMENSION i = 0; i < count; ++i) rows[i] = pixels + (reader.info.output_scanline + i) * row_bytes;
    jpeg_read_scanlines(&reader.info, rows, count);
  }
  jpeg_finish_decompress(&reader.info);  // fails if the end marker is missing, i.e. the file is truncated
  return true;
}

}  // namespace

Image decode_jpeg(Bytes bytes, const DecodeOptions& options, const std::string& where) {
  JpegReader reader;
  if (!read_header(reader, bytes)) throw Error(where, "a complete JPEG image", reader.message);
  const int64_t width = reader.info.image_width, height = reader.info.image_height;
  check_size(width, height, options.max_pixels, where);
  // With several scans libjpeg holds the coefficients of the whole image, 16 bits each.
  reserve_pixels(where, width, height, jpeg_has_multiple_scans(&reader.info) ? 2 * reader.info.num_components : 0);
  Image image = make_image(width, height, reader.info.num_components);
  if (!read_jpeg_pixels(reader, image.pixels.data(), static_cast<size_t>(image.row_bytes()))) {
    throw Error(where, "a complete JPEG image", reader.message);
  }
  if (image.channels == 4) {
    Image rgb = make_image(width, height, 3);
    inverted_cmyk_to_rgb(image.pixels.data(), width * height, rgb.pixels.data());
    image = std::move(rgb);
  }
  return to_mode(std::move(image), options.mode);
}

}  // namespace vitrail::image
