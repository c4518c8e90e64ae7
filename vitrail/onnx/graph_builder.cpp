// SPDX-License-Identifier: Apache-2.0
#include "vitrail/onnx/graph_builder_internal.h"

#include <algorithm>
#include <array>
#include <ios>
#include <iterator>
#include <memory>

#include "vitrail/base/error.h"
#include "vitrail/base/round_up_internal.h"
#include "vitrail/onnx/protobuf_writer_internal.h"

namespace vitrail::onnx {
namespace {

// Numbers of fields and enumerations in onnx/onnx.proto.
namespace field {
constexpr uint32_t model_ir_version = 1, model_producer_name = 2, model_producer_version = 3, model_graph = 7,
                   model_opset_import = 8, model_metadata = 14;
constexpr uint32_t entry_key = 1, entry_value = 2;
constexpr uint32_t opset_version = 2;
constexpr uint32_t graph_node = 1, graph_name = 2, graph_initializer = 5, graph_input = 11, graph_output = 12;
constexpr uint32_t node_input = 1, node_output = 2, node_name = 3, node_op_type = 4, node_attribute = 5;
constexpr uint32_t attribute_name = 1, attribute_f = 2, attribute_i = 3, attribute_s = 4, attribute_ints = 8,
                   attribute_type = 20;
constexpr uint32_t tensor_dims = 1, tensor_data_type = 2, tensor_name = 8, tensor_raw_data = 9,
                   tensor_external_data = 13, tensor_data_location = 14;
constexpr uint32_t value_name = 1, value_type = 2, type_tensor = 1, tensor_type_elem = 1, tensor_type_shape = 2,
                   shape_dim = 1, dim_value = 1, dim_param = 2;
}  // namespace field
constexpr int64_t kExternal = 1;
constexpr std::array kSymbols{"batch", "num_points", "height", "width"};  // kBatch, …, as segment-anything names them
constexpr uint64_t kDataAlignment = 4096;  // readers map external weights into memory by pages

int64_t element_type(DType dtype) {
  switch (dtype) {
    case DType::f32:
      return 1;
    case DType::u8:
      return 2;
    case DType::i8:
      return 3;
    case DType::i64:
      return 7;
    default:
      throw Error("ONNX tensor", "f32, u8, i8 or i64", name_of(dtype));
  }
}

// The version of the file format with which onnx released an opset.
int64_t ir_version_of(int opset) { return opset >= 21 ? 10 : opset >= 19 ? 9 : 8; }

std::string attribute_message(const Attribute& attribute) {
  enum : int64_t { kFloat = 1, kInt = 2, kString = 3, kInts = 7 };
  ProtobufWriter out;
  out.text(field::attribute_name, attribute.name);
  if (const auto* f = std::get_if<float>(&attribute.value)) {
    out.real(field::attribute_f, *f);
    out.integer(field::attribute_type, kFloat);
  } else if (const auto* i = std::get_if<int64_t>(&attribute.value)) {
    out.integer(field::attribute_i, *i);
    out.integer(field::attribute_type, kInt);
  } else if (const auto* s = std::get_if<std::string>(&attribute.value)) {
    out.text(field::attribute_s, *s);
    out.integer(field::attribute_type, kString);
  } else {
    for (const int64_t value : std::get<Ints>(attribute.value)) out.integer(field::attribute_ints, value);
    out.integer(field::attribute_type, kInts);
  }
  return out.bytes();
}

std::string value_message(const GraphValue& value) {
  ProtobufWriter shape, tensor_type, type, out;
  for (const int64_t extent : value.shape) {
    ProtobufWriter dim;
    if (extent < 0) {
      dim.text(field::dim_param, kSymbols.at(static_cast<size_t>(-extent - 1)));
    } else {
      dim.integer(field::dim_value, extent);
    }
    shape.text(field::shape_dim, dim.bytes());
  }
  tensor_type.integer(field::tensor_type_elem, element_type(value.dtype));
  tensor_type.text(field::tensor_type_shape, shape.bytes());
  type.text(field::type_tensor, tensor_type.bytes());
  out.text(field::value_name, value.name);
  out.text(field::value_type, type.bytes());
  return out.bytes();
}

std::string entry_message(const std::string& key, const std::string& value) {
  ProtobufWriter out;
  out.text(field::entry_key, key);
  out.text(field::entry_value, value);
  return out.bytes();
}

uint64_t bytes_of(const Tensor& tensor) { return static_cast<uint64_t>(tensor.numel()) * size_of(tensor.dtype()); }

ProtobufWriter tensor_message(const std::string& name, const Tensor& tensor) {
  ProtobufWriter out;
  for (const int64_t extent : tensor.shape()) out.integer(field::tensor_dims, extent);
  out.integer(field::tensor_data_type, element_type(tensor.dtype()));
  out.text(field::tensor_name, name);
  return out;
}

// A tensor whose values are in the file `location`.
std::string external_message(const std::string& name, const Tensor& tensor, const std::string& location,
                             uint64_t offset) {
  ProtobufWriter out = tensor_message(name, tensor);
  out.text(field::tensor_external_data, entry_message("location", location));
  out.text(field::tensor_external_data, entry_message("offset", std::to_string(offset)));
  out.text(field::tensor_external_data, entry_message("length", std::to_string(bytes_of(tensor))));
  out.integer(field::tensor_data_location, kExternal);
  ProtobufWriter item;
  item.text(field::graph_initializer, out.bytes());
  return item.bytes();
}

// A tensor in the graph up to its values, which follow.
std::string inline_header(const std::string& name, const Tensor& tensor) {
  ProtobufWriter message = tensor_message(name, tensor), out;
  message.text_header(field::tensor_raw_data, bytes_of(tensor));
  out.text_header(field::graph_initializer, message.bytes().size() + bytes_of(tensor));
  return out.bytes() + message.bytes();
}

// The offset of the next tensor in the file of external weights.
uint64_t after(uint64_t offset, const Tensor& tensor) { return offset + round_up(bytes_of(tensor), kDataAlignment); }

std::string model_header(const ModelInfo& info) {
  ProtobufWriter out, opset;
  out.integer(field::model_ir_version, ir_version_of(info.opset));
  out.text(field::model_producer_name, "vitrail");
  out.text(field::model_producer_version, info.producer_version);
  opset.integer(field::opset_version, info.opset);
  out.text(field::model_opset_import, opset.bytes());
  for (const auto& [key, value] : info.metadata) out.text(field::model_metadata, entry_message(key, value));
  return out.bytes();
}

}  // namespace

std::string GraphBuilder::unique(const std::string& wanted) {
  std::string name = wanted;
  for (int i = 1; !names_.insert(name).second; ++i) name = str(wanted, "_", i);
  return name;
}

std::string GraphBuilder::add_node(const std::string& op, const std::vector<std::string>& inputs,
                                   const std::vector<Attribute>& attributes) {
  ProtobufWriter out;
  for (const std::string& input : inputs) out.text(field::node_input, input);
  out.text(field::node_op_type, op);
  for (const Attribute& attribute : attributes) out.text(field::node_attribute, attribute_message(attribute));
  std::string& value = known_[out.bytes()];
  if (!value.empty()) return value;
  value = unique(str(op, "_", nodes_.size()));
  // The only operator here with two outputs: the second one, the indices, is its value.
  if (op == "TopK") out.text(field::node_output, unique(value + "_values"));
  out.text(field::node_output, value);
  out.text(field::node_name, value);
  nodes_.push_back({inputs, value, out.bytes()});
  return value;
}

std::string GraphBuilder::constant(const Tensor& tensor, const std::string& name) {
  std::string& value = known_[str("constant ", tensor.storage().get(), " ", tensor.offset(), " ", tensor.shape(), " ",
                                  tensor.strides())];
  if (value.empty()) {
    value = unique(name);
    initializers_.push_back({value, tensor});
  }
  return value;
}

std::string GraphBuilder::constant(const Ints& values) {
  std::string name = "ints";
  for (const int64_t value : values) name += str("_", value);
  std::string& known = known_["constant " + name];
  if (known.empty()) {
    known = unique(name);
    initializers_.push_back({known, Tensor::from<int64_t>({static_cast<int64_t>(values.size())}, values)});
  }
  return known;
}

std::string GraphBuilder::scalar(double value) {
  std::string& known = known_[str("scalar ", std::hexfloat, value)];
  if (known.empty()) {
    known = unique(str("scalar_", value));
    initializers_.push_back({known, Tensor::full({}, value)});
  }
  return known;
}

std::string GraphBuilder::integer(int64_t value, DType dtype) {
  std::string& known = known_[str("integer ", name_of(dtype), " ", value)];
  if (known.empty()) {
    known = unique(str(dtype == DType::i64 ? "index" : name_of(dtype), "_", value));
    initializers_.push_back({known, Tensor::full({}, static_cast<double>(value), dtype)});
  }
  return known;
}

std::string GraphBuilder::cast(const std::string& x, DType dtype) {
  return node("Cast", {x}, {{"to", element_type(dtype)}});
}

std::string GraphBuilder::concat(const std::vector<std::string>& parts, int64_t axis) {
  return node("Concat", parts, {{"axis", axis}});
}

std::string GraphBuilder::extent(const std::string& x, int64_t axis) {
  return node("Shape", {x}, {{"start", axis}, {"end", axis + 1}});
}

void GraphBuilder::add_input(const GraphValue& value) {
  names_.insert(value.name);
  inputs_.push_back(value);
}

void GraphBuilder::add_output(const std::string& value, const GraphValue& output) {
  ProtobufWriter out;
  out.text(field::node_input, value);
  out.text(field::node_output, output.name);
  out.text(field::node_name, output.name);
  out.text(field::node_op_type, "Identity");
  nodes_.push_back({{value}, output.name, out.bytes()});
  outputs_.push_back(output);
}

// What the outputs depend on.  A node follows those whose values it reads.
std::set<std::string> GraphBuilder::needed_values() const {
  std::set<std::string> needed;
  for (const GraphValue& output : outputs_) needed.insert(output.name);
  for (auto node = nodes_.rbegin(); node != nodes_.rend(); ++node) {
    if (needed.count(node->output) > 0) needed.insert(node->inputs.begin(), node->inputs.end());
  }
  return needed;
}

std::vector<GraphBuilder::Initializer> GraphBuilder::needed_initializers() const {
  const std::set<std::string> needed = needed_values();
  std::vector<Initializer> items;
  std::copy_if(initializers_.begin(), initializers_.end(), std::back_inserter(items),
               [&](const Initializer& item) { return needed.count(item.name) > 0; });
  return items;
}

std::string GraphBuilder::graph_without_weights() const {
  const std::set<std::string> needed = needed_values();
  ProtobufWriter out;
  for (const Node& node : nodes_) {
    if (needed.count(node.output) > 0) out.text(field::graph_node, node.message);
  }
  out.text(field::graph_name, "vitrail");
  for (const GraphValue& value : inputs_) out.text(field::graph_input, value_message(value));
  for (const GraphValue& value : outputs_) out.text(field::graph_output, value_message(value));
  return out.bytes();
}

// The graph is written piece by piece, so that no second copy of the weights is in memory.
void commit(const PendingFiles& files) {
  std::vector<AtomicFile*> together;
  for (const auto& file : files) together.push_back(file.get());
  AtomicFile::commit_together(together);
}

PendingFiles GraphBuilder::write(const std::filesystem::path& path, const ModelInfo& info,
                                 uint64_t inline_bytes) const {
  const std::filesystem::path data_path = path.string() + ".data";
  const std::vector<Initializer> initializers = needed_initializers();
  uint64_t weight_bytes = 0;
  for (const Initializer& item : initializers) weight_bytes += bytes_of(item.tensor);
  const bool external = weight_bytes > inline_bytes;
  const auto is_outside = [&](const Tensor& tensor) { return external && tensor.dtype() != DType::i64; };
  const std::string graph = graph_without_weights();
  std::vector<std::string> headers;  // precede the values of each tensor in the graph
  uint64_t graph_bytes = graph.size(), offset = 0;
  for (const auto& [name, tensor] : initializers) {
    if (is_outside(tensor)) {
      headers.push_back(external_message(name, tensor, data_path.filename().string(), offset));
      offset = after(offset, tensor);
    } else {
      headers.push_back(inline_header(name, tensor));
      graph_bytes += bytes_of(tensor);
    }
    graph_bytes += headers.back().size();
  }
  ProtobufWriter start;
  start.text_header(field::model_graph, graph_bytes);
  auto file = std::make_unique<AtomicFile>(path);
  file->write(model_header(info) + start.bytes() + graph);
  auto data = external ? std::make_unique<AtomicFile>(data_path) : nullptr;
  offset = 0;
  for (size_t i = 0; i < initializers.size(); ++i) {
    const Tensor tensor = initializers[i].tensor.contiguous();
    file->write(headers[i]);
    if (is_outside(tensor)) {
      data->seek(offset);
      data->write(tensor.raw(), bytes_of(tensor));
      offset = after(offset, tensor);
    } else {
      file->write(tensor.raw(), bytes_of(tensor));
    }
  }
  PendingFiles files;
  if (data) files.push_back(std::move(data));
  files.push_back(std::move(file));
  return files;
}

}  // namespace vitrail::onnx
