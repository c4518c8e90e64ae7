// SPDX-License-Identifier: Apache-2.0
#include "vitrail/weights/foreign_formats_internal.h"

#include <algorithm>
#include <array>
#include <vector>

#include "vitrail/base/error.h"
#include "vitrail/base/near_names_internal.h"

namespace vitrail::weights {
namespace fs = std::filesystem;
using namespace std::string_view_literals;
namespace {

constexpr const char* kUseOriginal = "; use the PyTorch or safetensors checkpoint that it was made from";
constexpr const char* kSaveArrays = "; save the arrays by name as an .npz file (numpy.savez) or as safetensors";
constexpr const char* kUnpack = "; unpack it first";

struct Format {
  const char* what;
  const char* advice;
};
constexpr Format kGguf{"a GGUF or ggml file", kUseOriginal}, kOnnx{"an ONNX graph", kUseOriginal},
    kTensorRt{"a compiled TensorRT, OpenVINO or Core ML model", kUseOriginal},
    kTfLite{"a TensorFlow Lite model", kUseOriginal}, kIndex{"an index of vectors", ", not a model"},
    kHdf5{"an HDF5 file of Keras or TensorFlow", kSaveArrays}, kMsgpack{"a msgpack file of Flax", kSaveArrays},
    kTensorFlow{"a TensorFlow checkpoint or graph", kSaveArrays};

struct Magic {
  size_t offset;
  std::string_view bytes;
  Format format;
};
constexpr Magic kMagics[] = {
    {0, "GGUF"sv, kGguf},
    {0, "lmgg"sv, kGguf},
    {0, "fmgg"sv, kGguf},
    {0, "tjgg"sv, kGguf},
    {0, "\x89HDF\r\n"sv, kHdf5},
    {4, "TFL3"sv, kTfLite},
    {0, "\x93NUMPY"sv, {"a single NumPy array", kSaveArrays}},
    {0, "\x1f\x8b"sv, {"a gzip file", kUnpack}},
    {0, "\x28\xb5\x2f\xfd"sv, {"a zstd file", kUnpack}},
    {0,
     "\xfd"
     "7zXZ"sv,
     {"an xz file", kUnpack}},
    {0, "BZh"sv, {"a bzip2 file", kUnpack}},
    {0, "7z\xbc\xaf"sv, {"a 7z archive", kUnpack}},
    {0, "Rar!"sv, {"a RAR archive", kUnpack}},
    {257, "ustar"sv, {"a tar archive", kUnpack}},
    {0, "IxFI"sv, kIndex},
    {0, "IxSQ"sv, kIndex},
    {0, "\x89PNG"sv, {"a PNG image", ", not a model"}},
    {0, "\xff\xd8\xff"sv, {"a JPEG image", ", not a model"}},
    {0, "%PDF"sv, {"a PDF document", ", not a model"}},
};
constexpr std::string_view kTableMagic = "\x57\xfb\x80\x8b\x24\x75\x47\xdb";  // at the end of TensorFlow's .index

struct Extension {
  std::string_view text;
  Format format;
};
constexpr Extension kExtensions[] = {
    {".gguf", kGguf},
    {".ggml", kGguf},
    {".onnx", kOnnx},
    {".h5", kHdf5},
    {".hdf5", kHdf5},
    {".keras", kHdf5},
    {".msgpack", kMsgpack},
    {".tflite", kTfLite},
    {".pb", kTensorFlow},
    {".index", kTensorFlow},
    {".meta", kTensorFlow},
    {".data-00000-of-00001", kTensorFlow},
    {".engine", kTensorRt},
    {".plan", kTensorRt},
    {".mlmodel", kTensorRt},
    {".mlpackage", kTensorRt},
    {".distcp",
     {"a part of a checkpoint of torch.distributed",
      "; join the folder: torch.distributed.checkpoint.format_utils.dcp_to_torch_save(folder, \"weights.pth\")"}},
    {".pt2",
     {"a program of torch.export", "; save its weights instead: torch.save(model.state_dict(), \"weights.pth\")"}},
};

const Format* format_by_name(const std::string& name) {
  const std::string low = lower_case(name);
  for (const Extension& row : kExtensions) {
    if (low.ends_with(row.text)) return &row.format;
  }
  return nullptr;
}

// Flax writes a map whose first key is "params" or a parameter's name; ONNX begins with its version and producer.
const Format* format_by_structure(std::string_view bytes) {
  if (bytes.size() < 8) return nullptr;
  const auto byte = [&](size_t i) { return static_cast<unsigned char>(bytes[i]); };
  const bool fixmap = byte(0) >= 0x81 && byte(0) <= 0x8f && byte(1) >= 0xa1 && byte(1) <= 0xbf;
  const bool map16 = byte(0) == 0xde && byte(3) >= 0xa1 && byte(3) <= 0xbf;
  if (fixmap || map16) return &kMsgpack;
  const bool onnx = byte(0) == 0x08 && byte(1) <= 0x20 && (byte(2) == 0x12 || byte(2) == 0x3a || byte(2) == 0x42);
  return onnx ? &kOnnx : nullptr;
}

std::string text_of(const Format& format) { return std::string(format.what) + format.advice; }

}  // namespace

std::string foreign_file(std::string_view bytes, const std::string& name) {
  for (const Magic& magic : kMagics) {
    if (bytes.size() > magic.offset && bytes.substr(magic.offset).starts_with(magic.bytes))
      return text_of(magic.format);
  }
  if (bytes.ends_with(kTableMagic)) return text_of(kTensorFlow);
  if (const Format* format = format_by_name(name)) return text_of(*format);
  const std::string begin = lower_case(std::string(bytes.substr(0, 256)));
  const size_t first = begin.find_first_not_of(" \t\r\n\xef\xbb\xbf");
  const std::string_view start = first == std::string::npos ? "" : std::string_view(begin).substr(first);
  if (start.starts_with("<!doctype") || start.starts_with("<html") || start.starts_with("<?xml")) {
    return "an HTML or XML page, not the weights: the download failed or is of a web page";
  }
  if (start.starts_with("{") || start.starts_with("[")) {
    return "a JSON text; give the weights, or the folder with config.json and the weights";
  }
  const Format* format = format_by_structure(bytes);
  return format == nullptr ? "" : text_of(*format);
}

std::string folder_content(const fs::path& folder) {
  constexpr std::array<std::string_view, 7> kWeights{".safetensors", ".pth", ".pt", ".bin", ".npz", ".ckpt", ".tar"};
  std::vector<std::string> weights, foreign;
  std::error_code error;
  for (fs::directory_iterator entry(folder, error), end; !error && entry != end; entry.increment(error)) {
    const std::string name = entry->path().filename().string();
    const std::string extension = lower_case(entry->path().extension().string());
    if (std::ranges::find(kWeights, extension) != kWeights.end()) weights.push_back(name);
    if (const Format* format = format_by_name(name)) foreign.push_back(str(name, ", ", text_of(*format)));
  }
  if (error) return "a folder that cannot be read: " + error.message();
  std::sort(weights.begin(), weights.end());
  std::sort(foreign.begin(), foreign.end());
  if (!weights.empty()) return str("other names; give the file itself: ", (folder / weights.front()).string());
  return foreign.empty() ? "none of them" : foreign.front();
}

}  // namespace vitrail::weights
