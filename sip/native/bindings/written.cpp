#include "written.hpp"

#include <array>
#include <charconv>
#include <cstddef>
#include <limits>
#include <string>
#include <string_view>

#include "header_fields.hpp"
#include "objects.hpp"
#include "trunkline/wire/fields.hpp"

namespace trunkline::wire {

namespace {

/// A byte that is not UTF-8 is kept in text as a lone surrogate: on the wire it is that byte again, and in
/// text it stays what it is.
constexpr const char* on_wire = "surrogateescape";
constexpr const char* in_text = "surrogatepass";

/// A class and where its instances keep their slots. Set when the classes are made, and never freed.
template <std::size_t count>
struct Known {
    nb::object type;
    std::array<Py_ssize_t, count> offsets{};

    void learn(const nb::object& cls, const std::array<const char*, count>& slots) {
        type = cls;
        for (std::size_t index = 0; index < count; ++index)
            offsets[index] = slot_offset(cls, slots[index]);
    }
    bool holds(nb::handle object) const {
        return type.is_valid() &&
               PyObject_TypeCheck(object.ptr(), reinterpret_cast<PyTypeObject*>(type.ptr()));
    }
    /// Value of a slot of an instance.
    nb::handle get(nb::handle object, std::size_t index) const {
        PyObject* const value =
            *reinterpret_cast<PyObject**>(reinterpret_cast<char*>(object.ptr()) + offsets[index]);
        if (value == nullptr) refuse(PyExc_AttributeError, "a part of a message was never set");
        return value;
    }
};

/// Slots of a request or response, in this order.
enum { start_slot, text_slot, headers_slot, body_slot };

struct Classes {
    Known<4> request, response;
    Known<7> uri;
    Known<3> address;
    nb::object reason_phrase, check_encodable, invalid_value;
};

Classes& classes() {
    static auto& all = *new Classes;
    return all;
}

void append(std::string& out, nb::handle text, const char* errors) {
    if (!PyUnicode_Check(text.ptr())) refuse(PyExc_TypeError, "a part of a message is text");
    if (PyUnicode_IS_COMPACT_ASCII(text.ptr())) {
        out.append(reinterpret_cast<const char*>(PyUnicode_1BYTE_DATA(text.ptr())),
                   static_cast<std::size_t>(PyUnicode_GET_LENGTH(text.ptr())));
        return;
    }
    const nb::object bytes = owned(PyUnicode_AsEncodedString(text.ptr(), "utf-8", errors));
    out.append(PyBytes_AS_STRING(bytes.ptr()), static_cast<std::size_t>(PyBytes_GET_SIZE(bytes.ptr())));
}

long number_of(nb::handle number) {
    int overflow = 0;
    const long value = PyLong_AsLongAndOverflow(number.ptr(), &overflow);
    if (PyErr_Occurred() != nullptr) nb::raise_python_error();
    return overflow > 0 ? std::numeric_limits<long>::max() : value;
}

void append_number(std::string& out, long number) {
    std::array<char, 24> digits{};
    const auto end = std::to_chars(digits.data(), digits.data() + digits.size(), number).ptr;
    out.append(digits.data(), end);
}

void append_params(std::string& out, nb::handle params, const char* errors) {
    if (!PyTuple_Check(params.ptr())) refuse(PyExc_TypeError, "parameters are a tuple");
    for (nb::handle param : nb::borrow<nb::tuple>(params)) {
        if (!PyTuple_Check(param.ptr()) || PyTuple_GET_SIZE(param.ptr()) != 2)
            refuse(PyExc_TypeError, "a parameter is a tuple of name and value");
        out += ';';
        append(out, PyTuple_GET_ITEM(param.ptr(), 0), errors);
        if (PyTuple_GET_ITEM(param.ptr(), 1) == Py_None) continue;
        out += '=';
        append(out, PyTuple_GET_ITEM(param.ptr(), 1), errors);
    }
}

void append_host(std::string& out, nb::handle host, const char* errors) {
    const std::size_t begin = out.size();
    append(out, host, errors);
    if (out.find(':', begin) == std::string::npos) return;
    out.insert(begin, 1, '[');
    out += ']';
}

void append_uri(std::string& out, nb::handle uri, const char* errors) {
    const auto& known = classes().uri;
    if (!known.holds(uri)) refuse(PyExc_TypeError, "a URI is a SipUri");
    const auto part = [&known, uri](std::size_t index) { return known.get(uri, index); };
    const nb::handle user = part(1), password = part(2), port = part(4), headers = part(6);
    const std::size_t begin = out.size();
    append(out, part(0), errors);
    const bool is_tel = std::string_view(out).substr(begin) == "tel";
    out += ':';
    if (!user.is_none()) {
        append(out, user, errors);
        if (!password.is_none() && !is_tel) {
            out += ':';
            append(out, password, errors);
        }
        if (!is_tel) out += '@';
    }
    if (!is_tel) {
        append_host(out, part(3), errors);
        if (!port.is_none()) {
            out += ':';
            append_number(out, number_of(port));
        }
    }
    append_params(out, part(5), errors);
    if (headers.is_none() || is_tel) return;
    out += '?';
    append(out, headers, errors);
}

/// A display name in quotes, without control characters, which no peer needs.
void append_quoted(std::string& out, nb::handle name, const char* errors) {
    std::string plain;
    append(plain, name, errors);
    out += '"';
    for (const char character : plain) {
        const auto byte = static_cast<unsigned char>(character);
        if (byte < 0x20 || byte == 0x7f) continue;
        if (character == '"' || character == '\\') out += '\\';
        out += character;
    }
    out += "\" ";
}

void append_address(std::string& out, nb::handle address, const char* errors) {
    const auto& known = classes().address;
    if (!known.holds(address)) refuse(PyExc_TypeError, "an address is a NameAddr");
    const nb::handle name = known.get(address, 0);
    if (!name.is_none() && !(PyUnicode_Check(name.ptr()) && PyUnicode_GET_LENGTH(name.ptr()) == 0))
        append_quoted(out, name, errors);
    out += '<';
    append_uri(out, known.get(address, 1), errors);
    out += '>';
    append_params(out, known.get(address, 2), errors);
}

template <void (*append_it)(std::string&, nb::handle, const char*)>
PyObject* as_text(PyObject* self) {
    return guarded([self] {
        std::string out;
        append_it(out, self, in_text);
        return owned(PyUnicode_DecodeUTF8(out.data(), static_cast<Py_ssize_t>(out.size()), in_text));
    });
}

// Messages.

void append_request_line(std::string& out, nb::handle request) {
    const auto& known = classes().request;
    const nb::handle method = known.get(request, start_slot);
    const bool has_bytes = !PyUnicode_Check(method.ptr()) || PyUnicode_IS_ASCII(method.ptr());
    if (has_bytes) append(out, method, on_wire);
    if (!is_token(out)) refuse(classes().invalid_value, "A method must be a token");
    out += ' ';
    append_uri(out, known.get(request, text_slot), on_wire);
    out += " SIP/2.0\r\n";
}

void append_status_line(std::string& out, nb::handle response) {
    const auto& known = classes().response;
    const nb::handle number = known.get(response, start_slot);
    const long status = number_of(number);
    if (status < 100 || status > 699)
        refuse(classes().invalid_value, "A status code must be between 100 and 699");
    out += "SIP/2.0 ";
    append_number(out, status);
    out += ' ';
    nb::object reason = nb::borrow(known.get(response, text_slot));
    if (!PyUnicode_Check(reason.ptr())) refuse(PyExc_TypeError, "a reason phrase is text");
    if (PyUnicode_GET_LENGTH(reason.ptr()) == 0) reason = classes().reason_phrase(number);
    if (!PyUnicode_IS_ASCII(reason.ptr())) classes().check_encodable(reason);
    const std::size_t begin = out.size();
    append(out, reason, on_wire);
    if (out.find_first_of("\r\n", begin) != std::string::npos)
        refuse(classes().invalid_value, "A reason phrase must not hold a line end");
    out += "\r\n";
}

void append_headers(std::string& out, nb::handle headers) {
    for (nb::handle entry : entries_of(headers)) {
        if (!PyTuple_Check(entry.ptr()) || PyTuple_GET_SIZE(entry.ptr()) != 3)
            refuse(PyExc_TypeError, "an entry is a tuple of key, name and value");
        PyObject* const key = PyTuple_GET_ITEM(entry.ptr(), 0);
        if (PyUnicode_Check(key) && PyUnicode_CompareWithASCIIString(key, "content-length") == 0) continue;
        append(out, PyTuple_GET_ITEM(entry.ptr(), 1), on_wire);
        out += ": ";
        append(out, PyTuple_GET_ITEM(entry.ptr(), 2), on_wire);
        out += "\r\n";
    }
}

nb::object write(nb::handle message) {
    constexpr std::size_t usual_bytes = 1536;
    std::string out;
    out.reserve(usual_bytes);
    const bool is_request = classes().request.holds(message);
    const auto& known = is_request ? classes().request : classes().response;
    if (!known.holds(message)) refuse(PyExc_TypeError, "a message is a Request or a Response");
    is_request ? append_request_line(out, message) : append_status_line(out, message);
    append_headers(out, known.get(message, headers_slot));
    const nb::handle body = known.get(message, body_slot);
    if (!PyBytes_Check(body.ptr())) refuse(PyExc_TypeError, "a body is bytes");
    const auto size = static_cast<std::size_t>(PyBytes_GET_SIZE(body.ptr()));
    out += "Content-Length: ";
    out += std::to_string(size);
    out += "\r\n\r\n";
    out.append(PyBytes_AS_STRING(body.ptr()), size);
    return owned(PyBytes_FromStringAndSize(out.data(), static_cast<Py_ssize_t>(out.size())));
}

void set_address_classes(const nb::object& uri, const nb::object& address) {
    classes().uri.learn(uri, {"scheme", "user", "password", "host", "port", "params", "headers"});
    classes().address.learn(address, {"display_name", "uri", "params"});
}

void set_message_classes(const nb::object& request, const nb::object& response, const nb::dict& helpers) {
    Classes& all = classes();
    all.request.learn(request, {"method", "uri", "headers", "body"});
    all.response.learn(response, {"status", "reason", "headers", "body"});
    all.reason_phrase = helpers["reason"];
    all.check_encodable = helpers["encodable"];
    all.invalid_value = helpers["error"];
}

/// A class without slots, whose instances say by `to_text` what they are as text.
nb::object text_class(const char* name, reprfunc to_text) {
    PyType_Slot slots[] = {{Py_tp_str, reinterpret_cast<void*>(to_text)}, {0, nullptr}};
    PyType_Spec spec{name, sizeof(PyObject), 0, Py_TPFLAGS_DEFAULT | Py_TPFLAGS_BASETYPE, slots};
    return owned(PyType_FromSpec(&spec));
}

}  // namespace

void define_writing(nb::module_& module) {
    module.attr("UriText") = text_class("sip._wire.UriText", as_text<append_uri>);
    module.attr("AddressText") = text_class("sip._wire.AddressText", as_text<append_address>);
    module.def("set_address_classes", &set_address_classes);
    module.def("set_message_classes", &set_message_classes);
    module.def("write", &write);
}

}  // namespace trunkline::wire
