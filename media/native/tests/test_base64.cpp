#include <doctest/doctest.h>

#include <random>
#include <string>
#include <vector>

#include "trunkline/text/base64.hpp"

using namespace trunkline;

namespace {

std::string encoded(const std::string& bytes) {
    std::string out(text::base64_size(bytes.size()), ' ');
    text::to_base64({reinterpret_cast<const std::uint8_t*>(bytes.data()), bytes.size()}, out.data());
    return out;
}

std::optional<std::string> decoded(const std::string& characters) {
    std::vector<std::uint8_t> out(characters.size() / 4 * 3 + 1);
    const auto size = text::from_base64(characters, out.data());
    if (!size) return std::nullopt;
    return std::string(out.begin(), out.begin() + static_cast<std::ptrdiff_t>(*size));
}

}  // namespace

TEST_CASE("base64: the vectors of RFC 4648 10") {
    const std::pair<const char*, const char*> vectors[] = {
        {"", ""},
        {"f", "Zg=="},
        {"fo", "Zm8="},
        {"foo", "Zm9v"},
        {"foob", "Zm9vYg=="},
        {"fooba", "Zm9vYmE="},
        {"foobar", "Zm9vYmFy"},
    };
    for (const auto& [bytes, characters] : vectors) {
        CHECK(encoded(bytes) == characters);
        CHECK(decoded(characters) == bytes);
    }
}

TEST_CASE("base64: every byte and length comes back") {
    std::mt19937 random(4648);
    for (std::size_t size = 0; size < 700; ++size) {
        std::string bytes(size, '\0');
        for (char& byte : bytes)
            byte = static_cast<char>(random());
        CHECK(decoded(encoded(bytes)) == bytes);
    }
}

TEST_CASE("base64: what is not strictly base64 is refused") {
    for (const char* text : {"Zg", "Zg=", "Zg==Zg==", "Z===", "====", "Zh==", "Zm9=", "Zm9v\nYmFy",
                             "Zm9v YmF", "Zm-_", "Zm9vYm\"y", "=m9v", "Z=9v", "Zm=v"}) {
        INFO(text);
        CHECK_FALSE(decoded(text).has_value());
    }
}
