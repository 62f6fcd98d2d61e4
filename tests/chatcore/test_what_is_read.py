"""What becomes of a file, told before it is sent: photographs, encodings, long files, scans."""

import io
from typing import Any

import pillow_heif
import pypdf
import pytest
from PIL import Image, ImageDraw
from rest_framework.test import APIClient

from chatcore.files import photographs
from chatcore.files.text import read_text
from chatcore.models import Attachment, Session
from models_registry.models import AiModel
from tests.support.attachment_requests import upload
from tests.support.sample_files import build_book

pytestmark = pytest.mark.django_db

TABLES = {
    "shift_jis": "商品名,価格,数量\nりんご,120,3\n東京都千代田区,みかん,45\n",
    "gb18030": "名称,价格,数量\n苹果,12,3\n北京市朝阳区,香蕉,5\n",
    "big5": "名稱,價格,數量\n蘋果,12,3\n台北市信義區,香蕉,5\n",
    "euc-kr": "이름,가격,수량\n사과,1200,3\n서울특별시,바나나,5\n",
    "windows-1251": "Название;Цена;Количество\nЯблоко;12;3\nМосква;Банан;5\n",
    "koi8-r": "Название;Цена;Количество\nЯблоко;12;3\nМосква;Банан;5\n",
    "windows-1253": "Όνομα;Τιμή\nΜήλο;12\nΑθήνα;5\n",
    "windows-1255": "דוח שנתי;סכום\nשלום עולם;5\nירושלים היא בירת ישראל;7\n",
    "windows-1256": "الاسم,السعر\nتفاح,12\nالقاهرة,5\n",
    "windows-874": "ชื่อ,ราคา\nแอปเปิ้ล,12\nกรุงเทพ,5\n",
    "windows-1250": "Název;Cena;Počet\nPříliš žluťoučký kůň úpěl ďábelské ódy;5;1\n",
    "windows-1254": "Değerlendirme çalışması yapıldı. Şu anda İstanbul'da yağmur yağıyor;3\n",
    "windows-1252": "Straße;Größe\nKöln;12 €\nSeñor Muñoz;3\nété à la plage;naïve\n",
}
WESTERN = [
    "café",
    "100 °C",
    "Düsseldorf",
    "£12",
    "12 €",
    "ÄÖÜ",
    "où",
    "Ærøskøbing;Ø",
    "naïve résumé",
]


@pytest.mark.parametrize(("encoding", "table"), TABLES.items(), ids=TABLES.keys())
def test_a_table_is_read_in_the_encoding_that_its_spreadsheet_wrote(
    encoding: str, table: str
) -> None:
    decoded = read_text(table.encode(encoding.replace("windows-", "cp")))
    assert decoded is not None
    assert (decoded.text, decoded.guessed_encoding) == (table, encoding)


def test_a_mixed_table_is_read_too_and_a_short_western_text_stays_western() -> None:
    mixed = "code,name,price\nA-100,リンゴ,120\nB-200,ミカン ジュース,90\n"
    assert read_text(mixed.encode("shift_jis")).text == mixed  # type: ignore[union-attr]
    for text in WESTERN:
        assert read_text(text.encode("cp1252")).text == text  # type: ignore[union-attr]


def test_a_guess_is_told_and_a_certain_encoding_is_not(api: APIClient, session: Session) -> None:
    guessed = upload(api, session, TABLES["shift_jis"].encode("shift_jis"), "a.csv").json()
    assert guessed["media_type"] == "text/csv; charset=shift_jis"
    certain = upload(api, session, TABLES["shift_jis"].encode(), "a.csv").json()
    assert certain["media_type"] == "text/csv"
    download = api.get(f"/api/v1/attachments/{guessed['id']}")
    assert download["Content-Type"] == "text/csv; charset=shift_jis"
    assert download.content == TABLES["shift_jis"].encode("shift_jis")


def build_photograph(kind: str, size: tuple[int, int], **options: Any) -> bytes:
    picture = Image.new("RGB", size, "white")
    ImageDraw.Draw(picture).rectangle((0, 0, size[0] // 2, size[1]), "red")
    data = io.BytesIO()
    pillow_heif.register_heif_opener()
    picture.save(data, kind, **options)
    return data.getvalue()


@pytest.mark.parametrize(("kind", "name"), [("HEIF", "IMG_1.HEIC"), ("AVIF", "photo.avif")])
def test_a_photograph_of_a_phone_is_stored_as_one_that_providers_take(
    api: APIClient, session: Session, kind: str, name: str
) -> None:
    stored = upload(api, session, build_photograph(kind, (64, 32)), name)
    assert stored.status_code == 201, stored.json()
    assert stored.json()["media_type"] == "image/jpeg"
    assert stored.json()["name"] == name.partition(".")[0] + ".jpg"
    picture = Image.open(io.BytesIO(bytes(Attachment.objects.get().data))).convert("RGB")
    assert picture.size == (64, 32)
    red, green, _blue = picture.getpixel((8, 16))  # type: ignore[misc]
    assert red > 200 > green


@pytest.mark.slow
def test_a_photograph_of_48_megapixels_is_made_smaller(api: APIClient, session: Session) -> None:
    stored = upload(api, session, build_photograph("JPEG", (8064, 6048), quality=30), "big.jpg")
    assert stored.status_code == 201, stored.json()
    picture = Image.open(io.BytesIO(bytes(Attachment.objects.get().data)))
    assert picture.size == (4096, 3072)


def test_a_photograph_that_is_broken_is_refused_in_words(api: APIClient, session: Session) -> None:
    broken = build_photograph("HEIF", (64, 32))[:200]
    assert photographs.is_foreign(broken)
    refused = upload(api, session, broken, "IMG_1.HEIC")
    assert refused.status_code == 400
    assert "This photograph is damaged" in refused.json()["errors"][0]["detail"]


def test_what_of_a_long_file_is_read_is_told_before_it_is_sent(
    api: APIClient, session: Session, model: AiModel
) -> None:
    book = build_book(60, 200)
    path = f"/api/v1/sessions/{session.pk}/attachments"
    upload(api, session, book, "book.pdf")
    [long] = api.get(path).json()["results"]
    assert long["excerpt"]["unit"] == "page"
    assert 1 <= long["excerpt"]["shown"] < long["excerpt"]["total"] == 60
    upload(api, session, ("line of words\n" * 20_000).encode(), "log.txt")
    shared, log = api.get(path).json()["results"]
    assert shared["excerpt"]["shown"] < long["excerpt"]["shown"]  # they share the room
    assert (log["excerpt"]["unit"], log["excerpt"]["total"]) == ("character", 280_000)
    AiModel.objects.update(context_window_size=1_000_000)
    assert [file["excerpt"] for file in api.get(path).json()["results"]] == [None, None]


def test_a_file_of_a_chat_that_does_not_exist_yet_is_only_looked_at(
    api: APIClient, model: AiModel
) -> None:
    form = {"file": io.BytesIO(build_book(60, 200))}
    answer = api.post("/api/v1/attachments/inspect", form, format="multipart")
    assert answer.status_code == 200, answer.json()
    assert answer.json()["excerpt"]["total"] == 60
    assert not Session.objects.exists()
    assert not Attachment.objects.exists()
    form = {"file": io.BytesIO(build_book(60, 200))}
    AiModel.objects.create(provider=model.provider, name="large", context_window_size=1_000_000)
    answer = api.post("/api/v1/attachments/inspect?model=scripted/large", form, format="multipart")
    assert answer.json()["excerpt"] is None


def test_a_scan_without_a_text_is_told(api: APIClient, session: Session) -> None:
    writer = pypdf.PdfWriter()
    writer.add_blank_page(100, 100)
    data = io.BytesIO()
    writer.write(data)
    upload(api, session, data.getvalue(), "scan.pdf")
    [scan] = api.get(f"/api/v1/sessions/{session.pk}/attachments").json()["results"]
    assert scan["excerpt"] == {"unit": "page", "shown": 0, "total": None}
