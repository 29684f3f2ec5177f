// Base64 of agents: what is read strictly, written again, is the same text.

#include <algorithm>
#include <string>

#include "input.hpp"
#include "trunkline/text/base64.hpp"

using namespace trunkline;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    const std::string text(reinterpret_cast<const char*>(data), size);
    std::vector<std::uint8_t> bytes(size / 4 * 3);
    const auto made = text::from_base64(text, bytes.data());
    if (!made) return 0;
    fuzz::require(*made <= bytes.size());
    std::string again(text::base64_size(*made), ' ');
    text::to_base64({bytes.data(), *made}, again.data());
    fuzz::require(again == text);
    return 0;
}
