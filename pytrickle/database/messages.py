"""What PostgreSQL says of statements that were ended and logins that it refused, in the languages that it speaks.

SQLSTATE 57014 stands for a limit and for somebody's request alike; Java tells of an error by its text alone, and so
does libpq of a refused login. Only a superuser may set lc_messages, so that a refresher is answered in the language of
its server.
"""

import re

STATEMENT_TIMEOUT = frozenset(
    {
        "canceling statement due to statement timeout",
        "storniere Anfrage wegen Zeitüberschreitung der Anfrage",
        "cancelando la sentencia debido a que se agotó el tiempo de espera de sentencias",
        "annulation de la requête à cause du délai écoulé pour l'exécution de l'instruction",
        "annullamento dell'istruzione a causa di timeout",
        "ステートメントのタイムアウトのためステートメントをキャンセルしています",
        "명령실행시간 초과로 작업을 취소합니다.",
        "выполнение оператора отменено из-за тайм-аута",
        "avbryter sats på grund av sats-timeout",
        "виконання оператора скасовано через тайм-аут",
        "由于语句执行超时，正在取消查询命令",
    }
)
LOCK_TIMEOUT = frozenset(
    {
        "canceling statement due to lock timeout",
        "storniere Anfrage wegen Zeitüberschreitung einer Sperre",
        "cancelando la sentencia debido a que se agotó el tiempo de espera de candados (locks)",
        "annulation de la requête à cause du délai écoulé pour l'obtention des verrous",
        "annullamento dell'istruzione a causa di timeout di lock",
        "ロックのタイムアウトのためステートメントをキャンセルしています",
        "გამოსახულება გაუქმდება ბლოკის მოლოდინის ვადის ამოწურვის გამო",
        "잠금 대기 시간 초과로 작업을 취소합니다.",
        "выполнение оператора отменено из-за тайм-аута блокировки",
        "avbryter sats på grund av lås-timeout",
        "виконання оператора скасовано через тайм-аут блокування",
        "由于锁超时，取消语句操作",
    }
)
USER_REQUEST = frozenset(
    {
        "canceling statement due to user request",
        "storniere Anfrage wegen Benutzeraufforderung",
        "cancelando la sentencia debido a una petición del usuario",
        "annulation de la requête à la demande de l'utilisateur",
        "annullamento dell'istruzione su richiesta dell'utente",
        "ユーザーからの要求により文をキャンセルしています",
        "사용자 요청에 의해 작업을 취소합니다.",
        "выполнение оператора отменено по запросу пользователя",
        "avbryter sats på användares begäran",
        "виконання оператора скасовано по запиту користувача",
        "由于用户请求而正在取消查询",
    }
)
SNAPSHOT_GONE = frozenset(
    {
        "could not import the requested snapshot",
        "konnte den angeforderten Snapshot nicht importieren",
        "no se pudo importar el snapshot solicitado",
        "n'a pas pu importer le snapshot demandé",
        "non è stato possibile importare lo snapshot richiesto",
        "要求したスナップショットをインポートできませんでした",
        "მოთხოვნილი სწრაფი ასლის შემოტანა შეუძლებელია",
        "요청한 스냅샷 가지오기 실패",
        "не удалось импортировать запрошенный снимок",
        "kunde inte importera efterfrågat snapshot",
        "не вдалося імпортувати запитаний знімок",
        "无法导入请求的快照",
    }
)
ERROR = frozenset(
    {
        "ERROR",
        "FEHLER",
        "ERREUR",
        "ERRORE",
        "შეცდომა",
        "오류",
        "ОШИБКА",
        "FEL",
        "ПОМИЛКА",
        "错误",
    }
)
LOGIN_REFUSED = re.compile(
    "|".join(
        (
            "authentication failed",
            "no password supplied",
            r"pg_hba\.conf",
            "does not exist",
            "is not permitted to log in|is not currently accepting connections|permission denied for database",
            "Passwort-Authentifizierung für Benutzer .* fehlgeschlagen",
            "(Rolle|Datenbank) .* existiert nicht",
            "hat keine Berechtigung zum Einloggen|akzeptiert gegenwärtig keine|keine Berechtigung für Datenbank",
            "la autentificación password falló para el usuario",
            "no existe (el rol|la base de datos)",
            "authentification par mot de passe échouée",
            "(le rôle|la base de données) .* n'existe pas",
            "autenticazione con password fallita",
            "il (ruolo|database) .* non esiste",
            "パスワード認証に失敗しました",
            "(ロール|データベース).*は存在しません",
            "პაროლით ავთენტიფიკაცია",
            "(როლი|მონაცემთა ბაზა) .*არ არსებობს",
            "password 인증을 실패했습니다",
            r"롤\(role\) 없음|데이터베이스 없음",
            "не прошёл проверку подлинности",
            "(роль|база данных) .* не существует",
            "Lösenordsautentisering misslyckades",
            "(rollen .* finns|databasen .* existerar) inte",
            "не пройшов автентифікацію",
            "роль .* не існує|бази даних .* не існує",
            "Password 认证失败",
            "(角色|数据库) .* 不存在",
        )
    )
)
NO_ROOM = re.compile(
    "|".join(
        (
            "too many (clients|connections)",
            "connection slots are reserved",
            "schon zu viele Verbindungen|zu viele Verbindungen (von|für)",
            "verbleibenden Verbindungen sind",
            "demasiad[oa]s (clientes|conexiones)",
            "las conexiones restantes están",
            "trop de (clients|connexions)",
            "connexions restants sont réservés",
            "troppi client|troppe connessioni",
            "rimanenti slot di connessione",
            "クライアント数が多すぎます|接続が多すぎます",
            "残りの接続スロット",
            "ძალიან ბევრი კავშირი|მეტისმეტად ბევრი",
            "동시 접속자? ?수를 초과|최대 접속수를 초과|남은 연결 슬롯",
            "слишком много (клиентов|подключений)|оставшиеся слоты",
            "för många (klienter|uppkopplingar)|resterande anslutningsslottar",
            "(вже|занадто) (забагато|багато) (клієнтів|підключень)|слоти підключень",
            "太多的客户|连接太多了|已保留的连接位置",
        )
    )
)
NOT_READY = re.compile(
    "|".join(
        (
            "the database system is ",
            "das Datenbanksystem (startet|nimmt|fährt|ist)",
            "el sistema de bases? de datos (está|aún|no está)",
            "le système de bases? de données ",
            "il (sistema di )?database (si sta|non accetta|è in)",
            "データベースシステムは",
            "მონაცემთა ბაზის სისტემ",
            "데이터베이스 시스템[이은]",
            "система (баз данных|БД) ",
            "databassystemet ",
            "система бази даних ",
            "数据库系统",
        )
    )
)
UNKNOWN_SETTING = re.compile(
    "|".join(
        (
            "unrecognized configuration parameter|invalid value for parameter",
            "unbekannter Konfigurationsparameter|ungültiger Wert für Parameter",
            "parámetro de configuración .* no reconocido|valor no válido para el parámetro",
            "paramètre de configuration .* non reconnu|valeur invalide pour le paramètre",
            "parametro di configurazione .* sconosciuto|valore non valido per il parametro",
            "設定パラメータ.*は不明です|パラメータ.*の値が不正です",
            "უცნობი პარამეტრი|მნიშვნელობა პარამეტრისთვის",
            "환경 매개 변수 이름|매개 변수의 값",
            "нераспознанный параметр конфигурации|неверное значение для параметра",
            "okänd konfigurationsparameter|ogiltigt värde för parameter",
            "нерозпізнаний параметр конфігурації|неприпустиме значення параметру",
            "未认可的配置参数|参数 .* 的值无效",
        )
    )
)
