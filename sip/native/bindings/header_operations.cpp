#include "header_operations.hpp"

#include <optional>
#include <utility>

#include "objects.hpp"
#include "trunkline/wire/fields.hpp"

namespace trunkline::wire::headers {

namespace {

nb::handle text_of(nb::handle value) {
    if (!PyUnicode_Check(value.ptr())) refuse(PyExc_TypeError, "names and values of header fields are text");
    return value;
}

bool is_in(nb::handle container, nb::handle item) {
    const int found = PySequence_Contains(container.ptr(), item.ptr());
    if (found < 0) nb::raise_python_error();
    return found == 1;
}

bool has(nb::handle text, Py_UCS4 character) {
    const Py_ssize_t size = PyUnicode_GET_LENGTH(text.ptr());
    return PyUnicode_FindChar(text.ptr(), character, 0, size, 1) >= 0;
}

bool same(PyObject* text, PyObject* other) {
    if (text == other) return true;
    if (!PyUnicode_Check(text) || PyUnicode_GET_LENGTH(text) != PyUnicode_GET_LENGTH(other)) return false;
    return PyUnicode_Compare(text, other) == 0;
}

/// Text without the spaces and tabs at both ends.
nb::object stripped(nb::handle text) {
    Py_ssize_t begin = 0, end = PyUnicode_GET_LENGTH(text.ptr());
    const auto is_space = [&text](Py_ssize_t place) {
        const Py_UCS4 character = PyUnicode_READ_CHAR(text.ptr(), place);
        return character == ' ' || character == '\t';
    };
    while (begin < end && is_space(begin))
        ++begin;
    while (begin < end && is_space(end - 1))
        --end;
    return owned(PyUnicode_Substring(text.ptr(), begin, end));
}

/// A list of entries, which Python can change: each is looked at before it is used.
class Entries {
  public:
    explicit Entries(HeaderFields& fields) : list_(fields.entries) {}

    Py_ssize_t size() const { return PyList_GET_SIZE(list_); }
    PyObject* key(Py_ssize_t place) const { return part(place, 0); }
    PyObject* name(Py_ssize_t place) const { return part(place, 1); }
    PyObject* value(Py_ssize_t place) const { return part(place, 2); }
    nb::handle entry(Py_ssize_t place) const { return PyList_GET_ITEM(list_, place); }

    /// The place of the first entry of a key from `place` on; the size without one.
    Py_ssize_t find(PyObject* wanted, Py_ssize_t place = 0) const {
        while (place < size() && !same(key(place), wanted))
            ++place;
        return place;
    }
    void append(nb::handle entry) {
        if (PyList_Append(list_, entry.ptr()) != 0) nb::raise_python_error();
    }
    void insert(Py_ssize_t place, nb::handle entry) {
        if (PyList_Insert(list_, place, entry.ptr()) != 0) nb::raise_python_error();
    }
    /// Remove all entries of a key from `place` on.
    void remove(PyObject* wanted, Py_ssize_t place) {
        while ((place = find(wanted, place)) < size()) {
            if (PyList_SetSlice(list_, place, place + 1, nullptr) != 0) nb::raise_python_error();
        }
    }
    void replace(Py_ssize_t place, nb::object entry) {
        if (PyList_SetItem(list_, place, entry.release().ptr()) != 0) nb::raise_python_error();
    }

  private:
    PyObject* part(Py_ssize_t place, Py_ssize_t index) const {
        PyObject* const entry = PyList_GET_ITEM(list_, place);
        if (!PyTuple_Check(entry) || PyTuple_GET_SIZE(entry) != 3)
            refuse(PyExc_TypeError, "an entry is a tuple of key, name and value");
        return PyTuple_GET_ITEM(entry, index);
    }

    PyObject* list_;
};

/// Key and written form of a name in any spelling, and whether it is one of the known names.
struct Name {
    nb::object key, written;
    bool known = false;
};

Name identify(nb::handle name) {
    const auto known = [](nb::handle spelling) -> std::optional<Name> {
        PyObject* const found = PyDict_GetItemWithError(rules().names.ptr(), spelling.ptr());
        if (found == nullptr && PyErr_Occurred() != nullptr) nb::raise_python_error();
        if (found == nullptr) return std::nullopt;
        return Name{nb::borrow(PyTuple_GET_ITEM(found, 0)), nb::borrow(PyTuple_GET_ITEM(found, 1)), true};
    };
    if (auto found = known(text_of(name))) return std::move(*found);
    nb::object key = nb::borrow(text_of(name.attr("lower")()));
    if (auto found = known(key)) return std::move(*found);
    return {std::move(key), nb::borrow(name)};
}

/// Drop the typed view of a field that changes.
void forget(HeaderFields& fields, nb::handle key) {
    if (PyDict_GET_SIZE(fields.views) > 0) {
        const int held = PyDict_Contains(fields.views, key.ptr());
        if (held < 0 || (held == 1 && PyDict_DelItem(fields.views, key.ptr()) != 0)) nb::raise_python_error();
    }
    for (std::size_t index = 0; index < attribute_count; ++index) {
        if (fields.attributes[index] != nullptr && same(rules().attributes[index].first.ptr(), key.ptr()))
            Py_CLEAR(fields.attributes[index]);
    }
}

bool is_header_name(nb::handle name) {
    if (!PyUnicode_IS_ASCII(name.ptr())) return false;
    const auto* const data = reinterpret_cast<const char*>(PyUnicode_1BYTE_DATA(name.ptr()));
    return is_token({data, static_cast<std::size_t>(PyUnicode_GET_LENGTH(name.ptr()))});
}

/// The entry of a field that is added, after checking that it can be written and read back.
nb::object new_entry(HeaderFields& fields, nb::handle name, nb::handle value) {
    const Name found = identify(name);
    if (!found.known && !is_header_name(name)) {
        refuse(rules().invalid_value, "A header field name must be a token");
    }
    if (has(text_of(value), '\r') || has(value, '\n')) {
        refuse(rules().invalid_value, "A header field value must not hold a line end");
    }
    if (!PyUnicode_IS_ASCII(value.ptr())) rules().check_encodable(value);
    forget(fields, found.key);
    return owned(PyTuple_Pack(3, found.key.ptr(), found.written.ptr(), value.ptr()));
}

std::pair<nb::object, nb::object> pair_of(nb::handle field) {
    const nb::object pair = owned(PySequence_Tuple(field.ptr()));
    if (PyTuple_GET_SIZE(pair.ptr()) != 2) refuse(PyExc_ValueError, "a field is a pair of name and value");
    return {nb::borrow(PyTuple_GET_ITEM(pair.ptr(), 0)), nb::borrow(PyTuple_GET_ITEM(pair.ptr(), 1))};
}

}  // namespace

Rules& rules() {
    static auto& all = *new Rules;
    return all;
}

// Reading.

nb::object first(HeaderFields& fields, nb::handle key) {
    const Entries entries(fields);
    const Py_ssize_t place = entries.find(text_of(key).ptr());
    return place == entries.size() ? nb::none() : nb::borrow(entries.value(place));
}

nb::object all_of(HeaderFields& fields, nb::handle key) {
    const Entries entries(fields);
    nb::list found;
    text_of(key);
    for (Py_ssize_t place = entries.find(key.ptr()); place < entries.size();
         place = entries.find(key.ptr(), place + 1)) {
        found.append(nb::handle(entries.value(place)));
    }
    return found;
}

nb::object get(HeaderFields& fields, nb::handle name) {
    return first(fields, identify(name).key);
}

nb::object get_all(HeaderFields& fields, nb::handle name) {
    const nb::object key = identify(name).key;
    nb::object values = all_of(fields, key);
    if (!is_in(rules().lists, key)) return values;
    nb::list elements;
    for (nb::handle value : values) {
        if (has(text_of(value), ',')) {
            elements.extend(rules().split_list(value));
        } else if (nb::object element = stripped(value); PyUnicode_GET_LENGTH(element.ptr()) > 0) {
            elements.append(element);
        }
    }
    return elements;
}

nb::object items(HeaderFields& fields) {
    const Entries entries(fields);
    nb::list made;
    for (Py_ssize_t place = 0; place < entries.size(); ++place)
        made.append(owned(PyTuple_Pack(2, entries.name(place), entries.value(place))));
    return made;
}

nb::object typed(HeaderFields& fields, nb::handle key, nb::handle parse) {
    PyObject* const held = PyDict_GetItemWithError(fields.views, key.ptr());
    if (held != nullptr && held != Py_None) return nb::borrow(held);
    if (PyErr_Occurred() != nullptr) nb::raise_python_error();
    const nb::handle self(reinterpret_cast<PyObject*>(&fields));
    nb::object value = parse(self, key);
    if (PyDict_SetItem(fields.views, key.ptr(), value.ptr()) != 0) nb::raise_python_error();
    return value;
}

// Changing.

nb::object add(HeaderFields& fields, nb::handle name, nb::handle value) {
    Entries(fields).append(new_entry(fields, name, value));
    return nb::none();
}

nb::object extend(HeaderFields& fields, nb::handle added) {
    for (nb::handle field : added) {
        const auto [name, value] = pair_of(field);
        add(fields, name, value);
    }
    return nb::none();
}

nb::object set(HeaderFields& fields, nb::handle name, nb::handle value) {
    nb::object entry = new_entry(fields, name, value);
    const nb::object key = nb::borrow(PyTuple_GET_ITEM(entry.ptr(), 0));
    Entries entries(fields);
    const Py_ssize_t place = entries.find(key.ptr());
    if (place == entries.size()) {
        entries.append(entry);
    } else {
        entries.replace(place, std::move(entry));
        entries.remove(key.ptr(), place + 1);
    }
    return nb::none();
}

nb::object add_custom(HeaderFields& fields, nb::handle added) {
    for (nb::handle field : added) {
        const auto [name, value] = pair_of(field);
        const nb::object key = identify(name).key;
        if (is_in(rules().owned_keys, key)) {
            PyErr_Format(rules().invalid_value.ptr(), "The session itself sets the header field %U",
                         name.ptr());
            nb::raise_python_error();
        }
        is_in(rules().replaceable, key) ? set(fields, name, value) : add(fields, name, value);
    }
    return nb::none();
}

nb::object push_via(HeaderFields& fields, nb::handle value) {
    const auto& key = rules().attributes[static_cast<std::size_t>(Attribute::via)].first;
    const Name name = identify(key);
    Entries(fields).insert(0,
                           owned(PyTuple_Pack(3, name.key.ptr(), name.written.ptr(), text_of(value).ptr())));
    forget(fields, key);
    return nb::none();
}

nb::object remove(HeaderFields& fields, nb::handle name) {
    const nb::object key = identify(name).key;
    forget(fields, key);
    Entries(fields).remove(key.ptr(), 0);
    return nb::none();
}

nb::object copy_keys(HeaderFields& fields, nb::handle other, nb::handle keys) {
    if (!PyObject_TypeCheck(other.ptr(), rules().base)) {
        refuse(PyExc_TypeError, "header fields are copied from those of another message");
    }
    Entries entries(fields);
    if (entries.size() > 0) {  // A view is of an entry: an empty message, as of a reply, has none to drop.
        for (nb::handle key : keys)
            forget(fields, text_of(key));
    }
    const Entries copied(of(other.ptr()));
    // The number is that before the first is added: a message may be given itself.
    const Py_ssize_t count = copied.size();
    for (Py_ssize_t place = 0; place < count && place < copied.size(); ++place) {
        const nb::object entry = nb::borrow(copied.entry(place)), key = nb::borrow(copied.key(place));
        if (is_in(keys, key)) entries.append(entry);
    }
    return nb::none();
}

nb::object copy(HeaderFields& fields) {
    nb::object entries = owned(PyList_GetSlice(fields.entries, 0, PyList_GET_SIZE(fields.entries)));
    return make_header_fields(reinterpret_cast<PyObject*>(Py_TYPE(&fields)), std::move(entries),
                              owned(PyDict_Copy(fields.views)));
}

}  // namespace trunkline::wire::headers
