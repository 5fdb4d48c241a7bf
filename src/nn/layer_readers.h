#pragma once
// How the keys of each kind of layer are read (layer_kinds.cpp has the table): whatever is wrong goes to the reader's
// problems, and what comes back adds the layer to a net.

#include <optional>
#include <span>
#include <string>

#include "nn/layer_table.h"

namespace echelon::nn {

using In = std::span<const Value>;
constexpr std::int64_t huge = 1 << 24;

int small(OptionReader& o, const std::string& key, int fallback, int least = 1, int most = 1 << 20);
float real(OptionReader& o, const std::string& key, double fallback, double least = -1e30, double most = 1e30);
std::int64_t size(OptionReader& o, const std::string& key, std::string_view why);  // which must be there
Size2 pair(OptionReader& o, const std::string& key, int fallback, int least = 1);  // one number, or [height, width]
std::optional<Init> start(OptionReader& o);                                        // `init` and `init_value`

// layer_readers.cpp: layers with weights
BuildLayer read_linear(OptionReader& o);
BuildLayer read_conv2d(OptionReader& o);
BuildLayer read_depthwise(OptionReader& o);
BuildLayer read_conv1d(OptionReader& o);
BuildLayer read_conv_transpose2d(OptionReader& o);
BuildLayer read_locally_connected(OptionReader& o);
BuildLayer read_group_norm(OptionReader& o);
BuildLayer read_embedding(OptionReader& o);
BuildLayer read_attention(OptionReader& o);
BuildLayer read_moe(OptionReader& o);
BuildLayer read_cross_attention(OptionReader& o);
BuildLayer read_batch_norm(OptionReader& o);
BuildLayer read_layer_norm(OptionReader& o);
BuildLayer read_response_norm(OptionReader& o);

// layer_readers_plain.cpp: layers without
BuildLayer read_dropout(OptionReader& o);
BuildLayer read_leaky_relu(OptionReader& o);
BuildLayer read_elu(OptionReader& o);
BuildLayer read_upsample(OptionReader& o);
BuildLayer read_reshape(OptionReader& o);
BuildLayer read_concat(OptionReader& o);
BuildLayer read_add(OptionReader& o);
BuildLayer read_multiply(OptionReader& o);
BuildLayer read_scale(OptionReader& o);
BuildLayer read_clip(OptionReader& o);
BuildLayer read_slice(OptionReader& o);
BuildLayer read_permute(OptionReader& o);
BuildLayer read_matmul(OptionReader& o);
BuildLayer read_causal_mask(OptionReader& o);

}  // namespace echelon::nn
