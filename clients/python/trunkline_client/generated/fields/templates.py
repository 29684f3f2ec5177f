# Written by scripts/client from the OpenAPI document of the server; do not edit.

from __future__ import annotations

from typing import Literal, NotRequired, TypedDict


class CreateTemplateFields(TypedDict):
    """
    Fields of `templates.create`.
    """

    name: str
    category: NotRequired[Literal['MARKETING', 'UTILITY', 'AUTHENTICATION'] | None]
    language: NotRequired[Literal['af', 'ar', 'ar_AE', 'ar_EG', 'ar_LB', 'ar_MA', 'ar_QA', 'ar_SA', 'as', 'az', 'be', 'be_BY', 'bg', 'bn', 'bn_BD', 'bn_IN', 'ca', 'cs', 'da', 'de', 'de_AT', 'de_CH', 'el', 'en', 'en_AE', 'en_AU', 'en_CA', 'en_GB', 'en_GH', 'en_IE', 'en_IN', 'en_JM', 'en_MY', 'en_NZ', 'en_QA', 'en_SG', 'en_UG', 'en_US', 'en_ZA', 'es', 'es_AR', 'es_CL', 'es_CO', 'es_CR', 'es_DO', 'es_EC', 'es_ES', 'es_GT', 'es_HN', 'es_MX', 'es_PA', 'es_PE', 'es_US', 'es_UY', 'et', 'fa', 'fi', 'fil', 'fr', 'fr_BE', 'fr_CA', 'fr_CH', 'fr_CI', 'fr_MA', 'ga', 'gu', 'ha', 'he', 'hi', 'hr', 'hu', 'id', 'it', 'ja', 'ka', 'kk', 'kn', 'ko', 'kok', 'ky_KG', 'lo', 'lt', 'lv', 'mai', 'mk', 'ml', 'mni', 'mr', 'ms', 'nb', 'ne', 'nl', 'nl_BE', 'or', 'pa', 'pl', 'prs_AF', 'ps_AF', 'pt_BR', 'pt_PT', 'ro', 'ru', 'rw_RW', 'sat', 'sd', 'si_LK', 'sk', 'sl', 'sq_AL', 'sr', 'sv', 'sw', 'ta', 'te', 'th', 'tr', 'uk', 'ur', 'uz', 'vi', 'zh_CN', 'zh_HK', 'zh_TW', 'zu'] | None]
    body: str


class ListTemplatesFields(TypedDict):
    """
    Fields of `templates.list`.
    """

    status: NotRequired[Literal['PENDING', 'APPROVED', 'REJECTED', 'PAUSED', 'ALL']]
    pageSize: NotRequired[int]


class UpdateChannelFields(TypedDict):
    """
    Fields of `templates.update_channel`.
    """

    number: NotRequired[str | None]
    displayName: NotRequired[str | None]
    isConnected: NotRequired[bool]
    messagesPerSecond: NotRequired[int | None]
