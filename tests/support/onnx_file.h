// SPDX-License-Identifier: Apache-2.0
#pragma once
// Reads the graph of an ONNX file (onnx/onnx.proto), so that tests can look at its operators, names and shapes.
#include <cstdint>
#include <filesystem>
#include <map>
#include <string>
#include <vector>

namespace vitrail::testing {

struct OnnxFile {
  struct Value {
    std::string name;
    int64_t type;                    // TensorProto.DataType: 1 float, 2 uint8, 3 int8, 7 int64
    std::vector<std::string> shape;  // numbers, or names of extents that a caller chooses

    bool operator==(const Value&) const = default;
  };
  struct Node {
    std::string op, output;  // output: the last of several, which is what vitrail reads
    std::vector<std::string> inputs;
    std::map<std::string, std::vector<double>> numbers = {};  // attributes: one number, or a list
    std::map<std::string, std::string> texts = {};            // attributes
  };
  struct Constant {
    int64_t type;
    std::vector<int64_t> shape;
    std::vector<double> values = {};
  };
  int64_t ir_version = 0, opset = 0;
  std::string producer;
  std::vector<Node> nodes;
  std::map<std::string, Constant> constants;
  std::vector<Value> inputs, outputs;
  std::map<std::string, std::string> metadata;

  int64_t count(const std::string& op) const;
};

OnnxFile read_onnx(const std::filesystem::path& path);

// The rules of the format that a graph must keep: a value has one source, which precedes its readers, and every output
// has one.  Besides, no operator or constant is without a reader.  Returns what is wrong, or an empty text.
std::string graph_errors(const OnnxFile& file);

}  // namespace vitrail::testing
