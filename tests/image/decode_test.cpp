// SPDX-License-Identifier: Apache-2.0
#include "vitrail/image/decode.h"

#include <cstdlib>
#include <iostream>

#include "tests/image/support.h"
#include "tests/support/errors.h"
#include "tests/support/messages.h"
#include "vitrail/base/error.h"
#include "vitrail/image/codecs_internal.h"
#include "vitrail/image/exif_internal.h"

namespace vitrail::image {
namespace {

Image decode_bytes(const std::vector<uint8_t>& bytes, const DecodeOptions& options = {}) {
  return decode(std::as_bytes(std::span(bytes)), options, "test");
}

std::vector<uint8_t> file_bytes(const std::string& name) {
  return read_bytes(testing::fixture("image/decode/" + name));
}

// The message of the Error that decode throws; empty if it throws none.
std::string failure(const std::vector<uint8_t>& bytes, const DecodeOptions& options = {}) {
  try {
    decode_bytes(bytes, options);
    return "";
  } catch (const Error& error) {
    return error.what();
  }
}

std::vector<uint8_t> cut(std::vector<uint8_t> bytes, size_t length) {
  bytes.resize(length);
  return bytes;
}

TEST(Decode, EqualsPillow) {
  const Golden golden("decode");
  for (const auto& entry : golden.index.at("cases")) {
    const std::string name = entry.at("file");
    DecodeOptions options;
    options.mode = entry.at("mode") == "L" ? ColorMode::grey : ColorMode::rgb;
    options.apply_exif = name.starts_with("exif_");
    const Image image = read_image(testing::fixture("image/decode/" + name), options);
    EXPECT_TRUE(same_pixels(image, golden.image(entry, channels_of(options.mode)))) << entry.dump();
  }
}

TEST(Decode, OrientationIsIgnoredByDefault) {
  const Image plain = decode_bytes(file_bytes("exif_6.png"));
  EXPECT_TRUE(same_pixels(plain, decode_bytes(file_bytes("exif_1.png"))));
}

TEST(Decode, ATruncatedFileIsAnErrorThatNamesTheFile) {
  for (const char* name : {"ycbcr_420.jpg", "ycbcr_420_progressive.jpg", "rgb_8.png", "rgb_8_interlaced.png",
                           "palette_8.png", "lossy.webp", "lossless.webp", "animated_lossy.webp", "plain.gif"}) {
    const std::vector<uint8_t> bytes = file_bytes(name);
    for (const size_t length : {bytes.size() / 8, bytes.size() / 2, bytes.size() * 3 / 4}) {
      EXPECT_TRUE(failure(cut(bytes, length)).starts_with("test: expected a ")) << name << " of " << length << " bytes";
    }
  }
  // Every length gives an Error, or the image if only trailing bytes are missing.
  for (const char* name : {"one_pixel.png", "one_pixel.jpg", "part_transparent.gif", "exif_6.webp"}) {
    const std::vector<uint8_t> bytes = file_bytes(name);
    for (size_t length = 0; length < bytes.size(); ++length) failure(cut(bytes, length));
  }
}

// As in Pillow, a JPEG needs its end marker; PNG and GIF do not.
TEST(Decode, AMissingEndMarkerIsAnErrorForJpegOnly) {
  const auto without_last = [](const std::string& name, size_t count) {
    const std::vector<uint8_t> bytes = file_bytes(name);
    return failure(cut(bytes, bytes.size() - count));
  };
  EXPECT_NE(without_last("ycbcr_420.jpg", 2), "");
  EXPECT_NE(without_last("ycbcr_420_progressive.jpg", 2), "");
  EXPECT_EQ(without_last("rgb_8.png", 12), "");
  EXPECT_EQ(without_last("plain.gif", 1), "");
}

// PNG chunks and the compressed stream have checksums.  Pillow checks those of the header and the stream.
TEST(Decode, WrongPngChecksumsAreErrorsAsInPillow) {
  const auto with_flipped = [](size_t from_end, size_t from_start) {
    std::vector<uint8_t> bytes = file_bytes("rgb_8.png");
    bytes[from_end > 0 ? bytes.size() - from_end : from_start] ^= 1;
    return failure(bytes);
  };
  EXPECT_NE(with_flipped(0, 8 + 8 + 13 + 3), "");  // header chunk
  EXPECT_EQ(with_flipped(12 + 1, 0), "");          // data chunk
  EXPECT_NE(with_flipped(12 + 4 + 1, 0), "");      // compressed stream
}

TEST(Decode, UnknownFormatsAreErrorsThatDescribeTheFile) {
  const auto text = [](std::string_view content) { return std::vector<uint8_t>(content.begin(), content.end()); };
  EXPECT_ERROR(failure({}), "test", "an empty file");
  EXPECT_ERROR(failure(text("hello, world")), "test", "an unknown format");
  for (const char* magic : {"\xff\xd8\xff", "\x89PNG\r\n\x1a\n", "GIF89a", "RIFF\x10\0\0\0WEBP", "BM", "P6 ", "P1\n"}) {
    EXPECT_NE(failure(text(std::string(magic) + std::string(200, 'x'))), "") << magic;
    EXPECT_NE(failure(text(magic)), "") << magic;
  }
  EXPECT_THROW(read_image(testing::scratch_folder()), Error);
  EXPECT_THROW(read_image(testing::scratch_folder() / "absent.png"), Error);
}

TEST(Decode, FilesThatAreNotReadAreNamed) {
  using namespace std::string_literals;
  const auto media = [](const std::string& brands) { return "\0\0\0\x1c"s + "ftyp" + brands; };
  const std::vector<std::pair<std::string, std::string>> files{
      {media("heic\0\0\0\0mif1heic"s), "HEIC"},
      {media("heix\0\0\0\0mif1heic"s), "HEIC"},
      {media("mif1\0\0\0\0mif1heic"s), "HEIC"},
      {media("mif1\0\0\0\0mif1avif"s), "AVIF"},
      {media("avif\0\0\0\0mif1miaf"s), "AVIF"},
      {media("isom\0\0\0\0mp41mp42"s), "a video"},
      {"\0\0\0\x0cJXL \r\n\x87\n"s, "JPEG XL"},
      {"\xff\x0a\xfa\x7f", "JPEG XL"},
      {"\0\0\x02\0\0\0\0\0\0\0\0\0"s, "TGA"},
      {"\0\0\x02\0\x01\0\x10\x10"s, "CUR"},
      {"<!DOCTYPE html><html>", "an HTML page"},
      {"\n\n  <HTML lang=en>", "an HTML page"},
      {"\xef\xbb\xbf<!-- x --><html>", "an HTML page"},
      {"%PDF-1.4", "PDF"},
      {"version https://git-lfs.github.com/spec/v1\noid sha256:0\nsize 1\n", "a Git LFS pointer"},
      {"\0\0\x01\0\x01\0"s, "ICO"},
      {"<?xml version=\"1.0\"?>\n<!-- y -->\n<svg xmlns=\"x\"/>", "SVG"},
      {"<svg/>", "SVG"},
      {"8BPS\0\x01"s, "PSD"},
      {std::string(600, '\0'), "a file of zeros"},
      {"\0\0\0\x0cjP  \r\n\x87\n"s, "JPEG 2000"},
      {"\xff\x4f\xff\x51", "JPEG 2000"},
      {media("crx \0\0\0\0crx "s), "a Canon raw image"},
      {media("avis\0\0\0\0msf1miaf"s), "AVIF"},
      {media("msf1\0\0\0\0iso8"s), "HEIC"},
      {media("hevc\0\0\0\0iso8"s), "HEIC"},
      {"\0\0\x0a\0\0\0\0\0"s, "TGA"},
      {"gimp xcf v011", "XCF (GIMP)"},
      {"DDS |", "DDS"},
      {"qoif", "QOI"},
      {"#?RADIANCE\n", "Radiance HDR"},
      {"v/1\x01\x02", "OpenEXR"},
      {"IIRO\x08", "an Olympus raw image"},
      {"IIU\0"s, "a Panasonic raw image"},
      {"FUJIFILMCCD-RAW", "a Fujifilm raw image"},
      {"%!PS-Adobe-3.0", "PostScript"},
      {"Pf\n1 1\n-1\n", "PFM"},
      {"PF\n1 1\n-1\n", "PFM"},
      {"P7\nWIDTH 1\n", "PAM"},
      {std::string(128, '\0') + "DICM", "DICOM"},
      {"DICM" + std::string(128, 'x'), "an unknown format"},
      {"\0\x05\x16\x07\0\x02"s, "an AppleDouble file"},
      {"PK\x03\x04", "a zip archive"},
      {"\x1f\x8b\x08", "a gzip file"},
      {"\x93NUMPY\x01", "a NumPy array"},
      {"\x1a\x45\xdf\xa3", "a video (Matroska or WebM)"},
      {"Rar!\x1a\x07", "a RAR archive"},
      {"7z\xbc\xaf\x27\x1c", "a 7z archive"},
      {"{\"a\": 1}", "a JSON file"},
      {"{\n}", "a JSON file"},
      {"<a/>", "an XML or HTML file"},
      {" <Body>", "an HTML page"}};
  for (const auto& [bytes, name] : files) {
    const std::string message = failure({bytes.begin(), bytes.end()});
    EXPECT_NE(message.find("got " + name), std::string::npos) << message;
  }
}

// A literal of six pixels is three bytes, and a byte that pads them to two words.
TEST(Decode, ALiteralOfARunLengthBmpIsPaddedToWords) {
  constexpr uint8_t kWidth = 6, kHeight = 2, kColours = 16, kData = 14 + 40 + 4 * kColours;
  std::vector<uint8_t> bmp(kData, 0);
  bmp[0] = 'B', bmp[1] = 'M', bmp[10] = kData, bmp[14] = 40, bmp[18] = kWidth, bmp[22] = kHeight, bmp[26] = 1;
  bmp[28] = 4, bmp[30] = 2;  // 4 bits, run lengths
  for (uint8_t i = 0; i < kColours; ++i) std::fill_n(bmp.begin() + 54 + 4 * i, 3, static_cast<uint8_t>(10 * i));
  for (const uint8_t byte : {0, 6, 0x12, 0x34, 0x56, 0, 0, 0, 6, 0x77, 0, 1}) bmp.push_back(byte);  // then a run of 6
  const Image image = decode_bytes(bmp, {.mode = ColorMode::grey});
  EXPECT_EQ(image.pixels, (std::vector<uint8_t>{70, 70, 70, 70, 70, 70, 10, 20, 30, 40, 50, 60}));
}

// A grey TIFF without compression of one row, two bytes to a sample.
std::vector<uint8_t> tiff_of_16_bits(uint8_t photometric, const std::vector<uint8_t>& samples) {
  std::vector<uint8_t> file{'I', 'I', 42, 0, 8, 0, 0, 0, 9, 0};
  const auto put = [&](size_t value, int bytes) {
    for (int i = 0; i < bytes; ++i) file.push_back(static_cast<uint8_t>(value >> (8 * i)));
  };
  const size_t bytes = 2 * samples.size(), data = 10 + 9 * 12 + 4;
  const std::pair<size_t, size_t> tags[] = {{256, samples.size()}, {257, 1}, {258, 16}, {259, 1},    {262, photometric},
                                            {273, data},           {277, 1}, {278, 1},  {279, bytes}};
  for (const auto& [tag, value] : tags) put(tag, 2), put(3, 2), put(1, 4), put(value, 4);
  put(0, 4);
  for (const uint8_t sample : samples) put(sample, 2);
  return file;
}

// Pillow inverts samples of at most 8 bits only.
TEST(Decode, ATiffOf16BitsWhoseZeroIsWhiteIsNotInverted) {
  for (const uint8_t photometric : {0, 1}) {
    const Image image = decode_bytes(tiff_of_16_bits(photometric, {0, 7, 200}), {.mode = ColorMode::grey});
    EXPECT_EQ(image.pixels, (std::vector<uint8_t>{0, 7, 200})) << int{photometric};
  }
}

// Cut at each length, or with a changed byte, these give an image or an Error.
TEST(Decode, DamagedBmpTiffAndNetpbmFilesAreErrorsOrImages) {
  DecodeOptions small;
  small.max_pixels = 1 << 16;
  for (const char* name : {"rle8.bmp", "rle4.bmp", "os2_1.bmp", "text.pbm", "binary_12.pgm", "orientation_6.tif",
                           "palette_2.tif", "tiff_lzw.tif", "group4.tif"}) {
    const std::vector<uint8_t> bytes = file_bytes(name);
    for (size_t i = 0; i < std::min<size_t>(bytes.size(), 400); ++i) {
      failure(cut(bytes, i), small);
      for (const uint8_t value : {0x00, 0x7f, 0xff}) {
        std::vector<uint8_t> changed = bytes;
        changed[i] = value;
        failure(changed, small);
      }
    }
  }
  for (const char* name : {"rgb_24.bmp", "palette_4.bmp", "binary.ppm", "text.pgm", "rgb_8_big.tif"}) {
    const std::vector<uint8_t> bytes = file_bytes(name);
    EXPECT_TRUE(failure(cut(bytes, bytes.size() / 2)).starts_with("test: expected a complete ")) << name;
  }
}

// A file can repeat its last scan at will; a decoder passes over the image for each.
TEST(Decode, ManyScansOfAJpegAreAnError) {
  const std::vector<uint8_t> bytes = file_bytes("ycbcr_420_progressive.jpg");
  const uint8_t start_of_scan[] = {0xff, 0xda};
  const auto last = std::find_end(bytes.begin(), bytes.end(), std::begin(start_of_scan), std::end(start_of_scan));
  const auto with_scans = [&](int more) {
    std::vector<uint8_t> file(bytes.begin(), bytes.end() - 2);
    for (int i = 0; i < more; ++i) file.insert(file.end(), last, bytes.end() - 2);
    file.insert(file.end(), bytes.end() - 2, bytes.end());
    return failure(file);
  };
  EXPECT_EQ(with_scans(450), "");
  EXPECT_TRUE(with_scans(550).starts_with("test: expected a ")) << with_scans(550);
}

// The size is refused before allocation, which would exceed the memory.
TEST(Decode, AnExcessiveSizeIsRefused) {
  std::vector<uint8_t> jpeg = file_bytes("ycbcr_420.jpg");
  const uint8_t start_of_frame[] = {0xff, 0xc0};
  const auto at = std::search(jpeg.begin(), jpeg.end(), std::begin(start_of_frame), std::end(start_of_frame));
  std::fill(at + 5, at + 9, uint8_t{0xee});
  EXPECT_ERROR(failure(jpeg), "test", "61166×61166");

  // Width and height 2^31 − 1, with the matching checksum.
  std::vector<uint8_t> png = file_bytes("rgb_8.png");
  const uint8_t size[] = {0x7f, 0xff, 0xff, 0xff, 0x7f, 0xff, 0xff, 0xff}, sum[] = {0x9b, 0xab, 0x9c, 0x31};
  std::copy(std::begin(size), std::end(size), png.begin() + 16);
  std::copy(std::begin(sum), std::end(sum), png.begin() + 29);
  EXPECT_ERROR(failure(png), "test", "2147483647×2147483647");

  std::vector<uint8_t> gif = file_bytes("plain.gif");
  std::fill(gif.begin() + 6, gif.begin() + 10, uint8_t{0xff});
  EXPECT_ERROR(failure(gif), "test", "65535×65535");

  std::vector<uint8_t> bmp = file_bytes("rgb_24.bmp");
  std::fill(bmp.begin() + 18, bmp.begin() + 21, uint8_t{0xff});
  EXPECT_ERROR(failure(bmp), "test", "16777215×19");
  const std::string ppm = "P6 100000 100000 255\n";
  EXPECT_ERROR(failure({ppm.begin(), ppm.end()}), "test", "100000×100000");

  DecodeOptions small;
  small.max_pixels = 29 * 19 - 1;
  for (const char* name : {"ycbcr_420.jpg", "rgb_8.png", "lossy.webp", "animated_lossless.webp", "plain.gif",
                           "rgb_24.bmp", "palette_4.bmp", "binary.ppm", "text.pbm", "tiff_lzw.tif", "cmyk.tif"}) {
    EXPECT_ERROR(failure(file_bytes(name), small), "test", "29×19") << name;
  }
}

TEST(Decode, ImagePathsAreRecognisedByExtension) {
  for (const char* name : {"a.jpg", "b.JPEG", "c.d.Png", "x/y.webp", "z.gif", "a.BMP", "b.tif", "c.tiff", "d.ppm",
                           "e.PGM", "f.jpe", "g.jfif", "h.apng", "i.dib", "j.pbm", "k.pnm"})
    EXPECT_TRUE(is_image_path(name)) << name;
  for (const char* name : {"a.txt", "jpg", ".png", "labels.csv", "a.jpg.txt", "b.heic", "bmp"}) {
    EXPECT_FALSE(is_image_path(name)) << name;
  }
}

TEST(Decode, HasTheOptionsOfTimmByDefault) {
  const DecodeOptions options;
  EXPECT_EQ(options.mode, ColorMode::rgb);
  EXPECT_FALSE(options.apply_exif);
  EXPECT_EQ(options.max_pixels, 178'956'970);
}

TEST(Decode, SizesAreAboveZeroAndAtMostTheLimit) {
  const auto refusal = [](int64_t width, int64_t height, int64_t limit) {
    return testing::error_of([&] { check_size(width, height, limit, "x"); });
  };
  EXPECT_ERROR(refusal(0, 5, 100), "x", "0×5");
  EXPECT_ERROR(refusal(5, 0, 100), "x", "5×0");
  EXPECT_ERROR(refusal(-5, -4, 100), "x", "-5×-4");
  EXPECT_ERROR(refusal(7, 3, 20), "x", "7×3");
  EXPECT_ERROR(refusal(3, 7, 20), "x", "3×7");
  EXPECT_ERROR(refusal(int64_t{1} << 40, int64_t{1} << 40, 20), "x", "1099511627776×1099511627776");
  EXPECT_NO_THROW(check_size(7, 3, 21, "x"));
  EXPECT_NO_THROW(check_size(3, 7, 22, "x"));
  EXPECT_NO_THROW(check_size(1, 1, 1, "x"));
}

TEST(Decode, SignaturesAreThoseOfTheFormats) {
  using namespace std::string_literals;
  const auto is_image = [](const std::string& bytes) { return has_image_signature(std::as_bytes(std::span(bytes))); };
  for (const std::string& bytes :
       {"\xff\xd8\xff"s, "\x89PNG\r\n\x1a\n"s, "GIF87a"s, "GIF89a"s, "BM"s, "II*\0"s, "MM\0*"s, "II+\0"s, "MM\0+"s,
        "RIFF....WEBP"s, "P1 "s, "P2\n"s, "P3\t"s, "P4#"s, "P5\r"s, "P6\v"s, "P6\f"s}) {
    EXPECT_TRUE(is_image(bytes)) << bytes;
    EXPECT_TRUE(is_image(bytes + "more")) << bytes;
    EXPECT_FALSE(is_image(bytes.substr(0, bytes.size() - 1)) && bytes.substr(0, 3) != "GIF") << bytes;
    EXPECT_FALSE(is_image(" " + bytes)) << bytes;
  }
  for (const std::string& bytes : {"RIFF....WAVE"s, "RIFFWEBP"s, "P0 "s, "P7 "s, "P1x"s, "P12"s, "P6\x08"s, "P6\x0e"s,
                                   "P6\x21"s, "p6 "s, "MM*\0"s, "II\0*"s, "gif89a"s, ""s, "\xff\xd8"s})
    EXPECT_FALSE(is_image(bytes)) << bytes;
}

TEST(Decode, AFileBeyondAGibibyteIsRefusedBeforeItIsRead) {
  const std::filesystem::path path = testing::scratch_folder() / "large.png";
  std::ofstream(path) << "P5 1 1 255 x";
  EXPECT_EQ(read_image(path, {.mode = ColorMode::grey}).pixels, (std::vector<uint8_t>{'x'}));
  std::filesystem::resize_file(path, (size_t{1} << 30) + 1);  // sparse
  EXPECT_TRUE(testing::contains(testing::error_of([&] { read_image(path); }), "at most 1073741824 bytes"));
}

TEST(Decode, ErrorsOfAFileBeginWithItsPath) {
  const std::filesystem::path path = testing::scratch_folder() / "x.png";
  std::ofstream(path) << "P5 1 1 255 ";
  EXPECT_ERROR(testing::error_of([&] { read_image(path); }), path.string(), "the end of the file");
}

TEST(Decode, TheOrientationIsAppliedWhereAsked) {
  DecodeOptions options;
  options.apply_exif = true;
  const Image plain = decode_bytes(file_bytes("exif_6.png")), upright = decode_bytes(file_bytes("exif_6.png"), options);
  EXPECT_EQ(upright.width, plain.height);
  EXPECT_EQ(upright.height, plain.width);
  EXPECT_TRUE(same_pixels(upright, exif_transpose(plain, 6)));
}

// Grey of more than 8 bits that is all white is told once in a process, whatever the format.  The child process has
// told nothing yet.
TEST(ClampedGreyDeathTest, IsToldOnceAndOnlyWithWhitePixels) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  const auto pgm = [](char high, char low) { return std::string("P5 1 1 65535 ") + high + low; };
  const std::pair<std::string, std::vector<uint8_t>> white[] = {{"pgm",
                                                                 [&] {
                                                                   const std::string file = pgm(1, 2);
                                                                   return std::vector<uint8_t>(file.begin(),
                                                                                               file.end());
                                                                 }()},
                                                                {"png", file_bytes("grey_16.png")},
                                                                {"tiff", file_bytes("grey_16_big.tif")}};
  for (const auto& [name, file] : white) {
    EXPECT_EXIT(
        {
          const testing::Warnings warnings;
          const auto read_as = [&](const std::vector<uint8_t>& bytes, const char* where) {
            decode(std::as_bytes(std::span(bytes)), {.mode = ColorMode::grey}, where);
          };
          const std::string dark = pgm(0, 7);
          read_as({dark.begin(), dark.end()}, "dark");
          read_as(file_bytes("grey_8.png"), "of 8 bits");
          const size_t before = warnings.messages.size();
          for (const char* where : {"first", "second"}) read_as(file, where);
          std::cerr << before << " " << warnings.messages.size() << " " << warnings.messages.at(0);
          std::exit(0);
        },
        ::testing::ExitedWithCode(0),
        "0 1 first: grey of more than 8 bits, in which all values from 255 on are white, as Pillow reads it: scale "
        "such "
        "images to 8 bits \\(other images like this one are not named\\)")
        << name;
  }
}

TEST(Decode, ATruncatedPngSaysSo) {
  for (const size_t length : {20, 40, 200}) {
    EXPECT_ERROR(failure(cut(file_bytes("rgb_8.png"), length)), "test", "the end of the file") << length;
  }
}

// A segment that is longer than the file, and a file of two components, which no kind of colours has.
TEST(Decode, DamagedHeadersOfAJpegAreErrors) {
  const std::string begin = "test: expected a complete JPEG image, got ";
  std::vector<uint8_t> comment{0xff, 0xd8, 0xff, 0xfe, 0xff, 0xff};
  comment.resize(100);
  EXPECT_TRUE(failure(comment).starts_with(begin)) << failure(comment);
  const std::vector<uint8_t> two{0xff, 0xd8, 0xff, 0xc0, 0,  14, 8, 0, 1, 0, 1, 2,  1, 0x11, 0,    2,   0x11,
                                 0,    0xff, 0xda, 0,    10, 2,  1, 0, 2, 0, 0, 63, 0, 0,    0xff, 0xd9};
  EXPECT_TRUE(failure(two).starts_with(begin)) << failure(two);
  EXPECT_TRUE(failure(cut(file_bytes("ycbcr_420.jpg"), 400)).starts_with(begin));
  EXPECT_TRUE(failure(cut(file_bytes("exif_6.jpg"), 30)).starts_with(begin));
}

}  // namespace
}  // namespace vitrail::image
